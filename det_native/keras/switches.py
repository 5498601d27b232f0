"""Switches of TensorFlow that cannot be undone in a process: intercepted while code runs that may not use them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from types import CodeType
from typing import Any

import tensorflow as tf

logger = logging.getLogger("det_native")

_NAMES = ("disable_eager_execution", "disable_v2_behavior")


@contextmanager
def suppressed(what: str) -> Iterator[None]:
    """Leave switches in the block without effect, and say so.

    In a process whose eager execution is off already they have none, and nothing is said.
    """

    def pass_over(name: str) -> None:
        logger.warning("%s: tf.compat.v1.%s() is passed over, the model is built eagerly.", what, name)

    if not tf.executing_eagerly():
        yield
        return
    with intercepted(pass_over):
        yield


@contextmanager
def intercepted(handle: Callable[[str], None]) -> Iterator[None]:
    """Call `handle` with the name of each switch in the block, in place of the switch."""
    with ExitStack() as stack:
        for name in _NAMES:
            stack.enter_context(_replaced(name, handle))
        yield


@contextmanager
def _replaced(name: str, handle: Callable[[str], None]) -> Iterator[None]:
    """Have the function of `name` call `handle` in the block, also where code has imported the function itself.

    So it is its code that is exchanged, not what a module has under the name. A block may stand in another one.
    """
    function: Any = getattr(tf.compat.v1, name)
    original: CodeType = function.__code__
    outer = function.__globals__.get(_HANDLER)
    function.__globals__[_HANDLER] = lambda: handle(name)
    function.__code__ = _instead.__code__
    try:
        yield
    finally:
        function.__code__ = original
        if outer is None:
            del function.__globals__[_HANDLER]
        else:
            function.__globals__[_HANDLER] = outer


_HANDLER = "_det_native_on_switch"


def _det_native_on_switch() -> None:
    """Stand for what the code of `_instead` finds under this name in the module whose function has it."""


def _instead() -> None:
    _det_native_on_switch()
