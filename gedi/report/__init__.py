"""What a run looks like: figures, the HTML page, the progress bar."""

from gedi.report import table_figures
from gedi.report.closing import closing
from gedi.report.page import write_report
from gedi.report.progress import Progress

__all__ = ["Progress", "closing", "table_figures", "write_report"]
