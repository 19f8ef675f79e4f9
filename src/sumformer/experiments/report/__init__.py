"""What all reports share: figures, pieces of HTML, numbers as text."""

REPORT_FILE = "report.html"
