"""The master's log file, rotated, with what the interpreter itself writes in it too."""

from __future__ import annotations

import logging
import os
from io import TextIOWrapper
from logging.handlers import RotatingFileHandler
from pathlib import Path

_BYTES = 5 << 20
_FILES = 3
_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"


class _Handler(RotatingFileHandler):
    """Rotates, and sends standard output and error after the new file if they go to the log."""

    def __init__(self, path: Path, *, standard_streams: bool) -> None:
        self._standard_streams = standard_streams
        super().__init__(path, maxBytes=_BYTES, backupCount=_FILES, encoding="utf-8")

    def _open(self) -> TextIOWrapper:
        stream = super()._open()
        os.chmod(stream.fileno(), 0o600)
        if self._standard_streams:
            os.dup2(stream.fileno(), 1)
            os.dup2(stream.fileno(), 2)
        return stream


def set_up_logging(path: Path, *, background: bool) -> None:
    """Log to a file, and to the terminal too where there is one.

    Parameters
    ----------
    background : bool
        Whether standard output and error go to the log already, as they do for a master that a client started.
    """
    handlers: list[logging.Handler] = [_Handler(path, standard_streams=background)]
    if not background:
        handlers.append(logging.StreamHandler())
    logging.basicConfig(level=logging.INFO, format=_FORMAT, handlers=handlers, force=True)
    # A line for each migration step and each phase of the start is of no use to anybody.
    for chatty in ("alembic", "uvicorn"):
        logging.getLogger(chatty).setLevel(logging.WARNING)
    logging.captureWarnings(True)
