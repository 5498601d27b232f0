"""A progress bar of what arrives, on standard error where that is a terminal; elsewhere nothing is drawn."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_tell: ContextVar[Callable[[int], object] | None] = ContextVar("_tell", default=None)


@contextmanager
def transfer_bar(what: str, size: int) -> Iterator[None]:
    """Draw a bar while files arrive that have `size` bytes together; it is gone afterwards.

    Parameters
    ----------
    what : str
        Said before the bar: ``"downloading"``.
    """
    from tqdm import tqdm

    # None: only where standard error is a terminal.
    with tqdm(total=size, desc=what, unit="B", unit_scale=True, leave=False, disable=None) as bar:
        token = _tell.set(bar.update)
        try:
            yield
        finally:
            _tell.reset(token)


def counted(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the pieces of a file as they arrive, and move the bar on that is drawn, if there is one."""
    tell = _tell.get()
    for chunk in chunks:
        if tell is not None:
            tell(len(chunk))
        yield chunk
