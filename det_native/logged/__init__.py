"""What the user's code logs while it trains: metrics of its own, pictures, tables, texts and histograms."""

from det_native.logged.calls import log, log_histogram, log_image, log_table, log_text
from det_native.logged.context import LoggingContext

__all__ = ["LoggingContext", "log", "log_histogram", "log_image", "log_table", "log_text"]
