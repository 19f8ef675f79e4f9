"""report.html of a fit: error, curve, predictions, worst sets."""

from sumformer.experiments.fit_report.page import write_fit_report as write_fit_report
