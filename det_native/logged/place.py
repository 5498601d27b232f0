"""Who takes what is logged in this process at this moment; nobody where nothing trains."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Literal, Protocol


class Taker(Protocol):
    """Takes what is logged. None of it raises: what cannot be kept is told. By itself, it keeps nothing."""

    def log(self, metrics: Mapping[Any, Any]) -> None:
        """Take scalars by name, as they are after the batches that are done."""
        return

    def log_image(self, name: Any, image: Any, caption: Any) -> None:
        """Take a picture."""
        return

    def log_table(self, name: Any, table: Any, caption: Any) -> None:
        """Take a table."""
        return

    def log_text(self, name: Any, text: Any) -> None:
        """Take a text."""
        return

    def log_histogram(self, name: Any, values: Any, bins: Any) -> None:
        """Take values, of which a histogram is kept."""
        return

    def show(self, shown: Any, display_id: str = "", *, update: bool = False) -> bool:
        """Take what a notebook would show; False if it is neither a figure nor a table, and no cell waits for it."""
        return False

    def printed(self, stream: Literal["stdout", "stderr"], text: str) -> None:
        """Take what the code prints."""
        return

    def clear_output(self) -> None:
        """Take note that the output of the cell is cleared."""
        return


_taker: Taker | None = None
_thread = threading.local()
_said = False


def taker() -> Taker | None:
    """Return who takes what is logged; None where nothing trains, which is said once."""
    if _taker is None:
        _say_nothing_trains()
    return _taker


def taker_or_none() -> Taker | None:
    """Return who takes what is logged, and say nothing where nobody does."""
    return _taker


@contextmanager
def taken_by(taker: Taker | None) -> Iterator[None]:
    """Make `taker` the one for the block; None leaves it as it is."""
    global _taker
    before = _taker
    if taker is not None:
        _taker = taker
    try:
        yield
    finally:
        _taker = before


@contextmanager
def only_logged() -> Iterator[None]:
    """Have what this thread prints in the block stand in the log, and not in the cell that waits."""
    _thread.is_unheard = True
    try:
        yield
    finally:
        _thread.is_unheard = False


def hear(stream: Literal["stdout", "stderr"], text: str) -> None:
    """Give what is printed to whoever takes it."""
    if _taker is not None and not getattr(_thread, "is_unheard", False):
        _taker.printed(stream, text)


def _say_nothing_trains() -> None:
    global _said
    if _said:
        return
    _said = True
    warnings.warn(
        "Nothing trains here, so what is logged is not kept: call det.log() and det.log_...() while the training goes "
        "on, in a callback, in train_batch() or in the body of the training loop. (This is said once.)",
        UserWarning,
        stacklevel=4,
    )
