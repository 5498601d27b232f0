"""Switches of TensorFlow that cannot be undone in a process: intercepted where the process is a user's."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from types import CodeType
from typing import Any

import tensorflow as tf

from det_harness.trial.services import OwnProcessNeededError

logger = logging.getLogger("det_native")

_NAMES = ("disable_eager_execution", "disable_v2_behavior")


@contextmanager
def needing_own_process(what: str) -> Iterator[None]:
    """Raise in the block, at the first switch, that `what` needs a process of its own.

    Raises
    ------
    OwnProcessNeededError
    """

    def refuse(name: str) -> None:
        raise OwnProcessNeededError(f"{what} calls tf.compat.v1.{name}(), which could not be undone in this process")

    with _intercepted(refuse):
        yield


@contextmanager
def suppressed(what: str) -> Iterator[None]:
    """Leave switches in the block without effect, and say so."""

    def pass_over(name: str) -> None:
        logger.info("%s: tf.compat.v1.%s() is passed over, what is loaded is built eagerly.", what, name)

    with _intercepted(pass_over):
        yield


@contextmanager
def _intercepted(handle: Callable[[str], None]) -> Iterator[None]:
    with ExitStack() as stack:
        for name in _NAMES:
            stack.enter_context(_replaced(name, handle))
        yield


@contextmanager
def _replaced(name: str, handle: Callable[[str], None]) -> Iterator[None]:
    """Have the function of `name` call `handle` in the block, also where code has imported the function itself.

    So it is its code that is exchanged, not what a module has under the name.
    """
    function: Any = getattr(tf.compat.v1, name)
    original: CodeType = function.__code__
    function.__globals__["_det_native_on_switch"] = lambda: handle(name)
    function.__code__ = _instead.__code__
    try:
        yield
    finally:
        function.__code__ = original
        del function.__globals__["_det_native_on_switch"]


def _det_native_on_switch() -> None:
    """Stand for what the code of `_instead` finds under this name in the module whose function has it."""


def _instead() -> None:
    _det_native_on_switch()
