"""A framework whose models are counters."""

__version__ = "1.0"
