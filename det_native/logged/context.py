"""The same functions as methods of every context."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

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

    def log(self, metrics: Mapping[str, Any] | None = None, /, **named: Any) -> None:
        """Log numbers of your own, ``context.log(f1=0.9)``, at the batch that the training is at; see ``det.log``."""
        calls.log(metrics, **named)

    def log_image(self, name: str, image: Any, caption: str | None = None) -> None:
        """Log a picture: an array, a figure, a PIL image or the path of a file; see ``det.log_image``."""
        calls.log_image(name, image, caption)

    def log_table(self, name: str, table: Any, caption: str | None = None) -> None:
        """Log a table: a DataFrame, a list of dicts, a dict of lists or an array; see ``det.log_table``."""
        calls.log_table(name, table, caption)

    def log_text(self, name: str, text: Any) -> None:
        """Log a text; see ``det.log_text``."""
        calls.log_text(name, text)

    def log_histogram(self, name: str, values: Any, bins: Any = 64) -> None:
        """Log how values are distributed; see ``det.log_histogram``."""
        calls.log_histogram(name, values, bins)
