"""What the arguments of ``init()`` and ``create()`` mean: pure functions, no I/O."""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, ParamSpec, TypeVar

from det_native.errors import ArgumentError
from det_native.schema.signatures import check_names

P = ParamSpec("P")
R = TypeVar("R")


class Mode(StrEnum):
    """Where to run, in the words of the documents.

    ``CLUSTER`` submits the experiment. ``LOCAL`` is one minimal loop of training, validation and checkpointing in this
    process; for full training here use ``local=True``.
    """

    CLUSTER = "cluster"
    LOCAL = "local"


@dataclass(frozen=True)
class Place:
    """Where and how much to train.

    Attributes
    ----------
    local : bool
        In this process, not on the cluster.
    test : bool
        One minimal loop only.
    notice : str
        A sentence to show, where the arguments mean less than a reader may think; else empty.
    by_master : bool
        It was to be local, which it cannot be in this process: the master of this machine trains it.
    """

    local: bool
    test: bool
    notice: str = ""
    by_master: bool = False


MINIMAL_LOOP_NOTICE = (
    "mode='local' is one minimal loop of training, validation and checkpointing in this process "
    "(local=True, test=True). To train here to the end: local=True."
)

_OFFICIAL = ("mode", "local", "test", "context_dir", "command", "master_url")
#: What follows the configuration in ``create()``, and in ``init()``, by name.
NAMES_OF_CREATE = (*_OFFICIAL, "values", "include", "show")
NAMES_OF_INIT = (*NAMES_OF_CREATE, "wait")
_MODE_FIRST = ("mode", "context_dir", "command", "master_url")
_LOCAL_FIRST = ("local", "test", "context_dir", "command", "master_url")


def resolve(mode: Mode | str | None = None, local: bool | None = None, test: bool | None = None) -> Place:
    """Decide where to run.

    Parameters
    ----------
    mode : Mode or str, optional
        ``"cluster"`` (the default) or ``"local"``.
    local : bool, optional
        Train in this process, to the end.
    test : bool, optional
        One minimal loop only.

    Raises
    ------
    ArgumentError
        If the arguments contradict each other or are of the wrong kind; the message names them.
    """
    for name, value in (("local", local), ("test", test)):
        if value is not None and not isinstance(value, bool):
            raise ArgumentError(f"{name} must be True or False, not {value!r}.")
    chosen = _as_mode(mode)
    if chosen is Mode.LOCAL:
        return _minimal_loop(local, test)
    if chosen is Mode.CLUSTER and local:
        raise ArgumentError(
            "mode='cluster' and local=True contradict each other: the first submits the experiment, the second trains "
            "in this process. Leave one of them out."
        )
    return Place(local=bool(local), test=bool(test))


def _as_mode(mode: object) -> Mode | None:
    if mode is None or isinstance(mode, Mode):
        return mode
    if isinstance(mode, str) and mode.lower() in set(Mode):
        return Mode(mode.lower())
    raise ArgumentError(f"mode must be 'cluster' or 'local' (det.experimental.Mode), not {mode!r}.")


def _minimal_loop(local: bool | None, test: bool | None) -> Place:
    if local is False:
        raise ArgumentError(
            "mode='local' and local=False contradict each other: the first runs in this process, the second on the "
            "cluster. Leave one of them out."
        )
    if test is False:
        raise ArgumentError(
            "mode='local' and test=False contradict each other: mode='local' is one minimal loop. To train here to the "
            "end, use local=True without mode."
        )
    return Place(local=True, test=True, notice=MINIMAL_LOOP_NOTICE)


def arrange(function: str, positional: Sequence[Any], keywords: Mapping[str, Any]) -> dict[str, Any]:
    """Name the positional arguments after `config`.

    The documents have three orders: ``mode, local, test, context_dir, ...`` (ours), ``mode, context_dir, command, ...``
    and ``local, test, context_dir, ...``. What stands first, and after it, tells which one was meant.

    Parameters
    ----------
    function : str
        Name of the call, for the message.
    positional : sequence
        The positional arguments that follow `config`.
    keywords : mapping
        The keyword arguments.

    Raises
    ------
    ArgumentError
        If an argument is given twice, or there are too many.
    """
    names = _order(positional)
    if len(positional) > len(names):
        raise ArgumentError(f"{function}() takes at most {', '.join(names)} by position after config.")
    arranged = dict(zip(names, positional, strict=False))
    twice = sorted(arranged.keys() & keywords.keys())
    if twice:
        raise ArgumentError(f"{function}() got {' and '.join(twice)} twice: by position and by name.")
    return arranged | dict(keywords)


def _order(positional: Sequence[Any]) -> tuple[str, ...]:
    if positional and isinstance(positional[0], bool):
        return _LOCAL_FIRST
    if len(positional) > 1 and isinstance(positional[1], str | os.PathLike):
        return _MODE_FIRST
    return _OFFICIAL


def _check_place_of_config(function: str, positional: Sequence[Any], leading: int) -> None:
    """Refuse a configuration among the arguments that follow the configuration's place."""
    if any(isinstance(value, Mapping) for value in positional):
        before = "trial_def, " * (leading - 1)
        place = "comes first" if leading == 1 else "comes right after the trial class"
        raise ArgumentError(
            f"{function}(): the dictionary is the configuration and {place}: {function}({before}{{...}}, local=True)."
        )


def any_documented_order(leading: int) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Let a function with the official signature also be called with the documents' other positional orders.

    Parameters
    ----------
    leading : int
        How many arguments come first, `config` the last of them.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        known = [*inspect.signature(function).parameters]

        @functools.wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            __tracebackhide__ = True  # of what goes wrong in the call, this frame says nothing
            check_names(function.__name__, kwargs, known)
            _check_place_of_config(function.__name__, args[leading:], leading)
            arranged = arrange(function.__name__, args[leading:], kwargs)
            rearranged: Callable[..., R] = function
            return rearranged(*args[:leading], **arranged)

        return call

    return decorate
