"""Keyword arguments that a function does not take, told with the one that was meant."""

from __future__ import annotations

import difflib
import functools
import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import ParamSpec, TypeVar

from det_native.errors import ArgumentError, SignatureError

P = ParamSpec("P")
R = TypeVar("R")


def check_names(function: str, keywords: Iterable[str], known: Sequence[str]) -> None:
    """Refuse a keyword argument that there is not, with the one that was probably meant.

    Raises
    ------
    SignatureError
    """
    for name in keywords:
        if name not in known:
            close = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
            meant = f"Did you mean {close[0]}?" if close else f"It takes: {', '.join(known)}."
            raise SignatureError(f"{function}() takes no argument {name!r}. {meant}")


def checked_wait(function: str, wait: object) -> bool | None:
    """Return ``wait`` of a training call: whether it waits for its end on the cluster; None leaves it open.

    Raises
    ------
    ArgumentError
        If it is something else.
    """
    if wait is not None and not isinstance(wait, bool):
        raise ArgumentError(
            f"{function}(): wait must be True (the trained weights are there when it returns) or False (it returns at "
            f"once), not {wait!r:.60}."
        )
    return wait


def names_checked(title: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Let a method refuse keyword arguments that it does not take as :func:`check_names` does.

    Parameters
    ----------
    title : str
        What the user calls: ``context.fit``.
    """

    def wrap(method: Callable[P, R]) -> Callable[P, R]:
        known = [*inspect.signature(method).parameters][1:]

        @functools.wraps(method)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            check_names(title, kwargs, known)
            return method(*args, **kwargs)

        return call

    return wrap
