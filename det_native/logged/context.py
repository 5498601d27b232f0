"""The same functions as methods of every context."""

from __future__ import annotations

from typing import ClassVar

from det_native.logged import calls
from det_native.public_names import PublicNames


class LoggingContext(PublicNames):
    """What a context has for logging; see :mod:`det_native.logged.calls`."""

    _public: ClassVar[tuple[str, ...]] = (
        "log",
        "log_histogram",
        "log_image",
        "log_table",
        "log_text",
    )

    log = staticmethod(calls.log)
    log_image = staticmethod(calls.log_image)
    log_table = staticmethod(calls.log_table)
    log_text = staticmethod(calls.log_text)
    log_histogram = staticmethod(calls.log_histogram)
