"""report.html: what a construction claims, and pictures of it."""

from sumformer.experiments.construction_report.page import write_report as write_report
