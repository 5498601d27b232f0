"""``tf.estimator.train_and_evaluate``: another function in its place, with its signature, and the way back."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import tensorflow as tf

_NAME = "train_and_evaluate"

Handler = Callable[[Any, Any, Any], Any]

_original: Callable[..., Any] | None = None
_handler: Handler | None = None


def take_over(handler: Handler) -> None:
    """Have every call of TensorFlow's function go to `handler`, from now on.

    Whoever has imported the function by its name before has the other one, too: it is replaced wherever a module holds
    it.

    Parameters
    ----------
    handler : callable
        Takes estimator, train_spec and eval_spec; while it runs, a call is TensorFlow's own.
    """
    global _handler
    if _original is None:
        _replace()
    _handler = handler


def give_back() -> None:
    """Have calls be TensorFlow's own again."""
    global _handler
    _handler = None


@contextmanager
def taken_over(handler: Handler) -> Iterator[None]:
    """Have calls go to `handler` for the duration of the block."""
    global _handler
    before = _handler
    take_over(handler)
    try:
        yield
    finally:
        _handler = before


def tensorflows_own(estimator: Any, train_spec: Any, eval_spec: Any) -> Any:
    """Call TensorFlow's function itself."""
    function = tf.estimator.train_and_evaluate if _original is None else _original
    return function(estimator, train_spec, eval_spec)


def _replace() -> None:
    global _original
    # Both are looked up: each is loaded when it is first asked for.
    original = tf.estimator.train_and_evaluate
    holders = [tf.estimator, tf.compat.v1.estimator, *_modules_with(original)]

    @functools.wraps(original)
    def train_and_evaluate(estimator: Any, train_spec: Any, eval_spec: Any) -> Any:
        __tracebackhide__ = True
        global _handler
        handler, _handler = _handler, None
        if handler is None:
            return original(estimator, train_spec, eval_spec)
        try:
            return handler(estimator, train_spec, eval_spec)
        finally:
            _handler = handler

    for holder in holders:
        setattr(holder, _NAME, train_and_evaluate)
    _original = original


def _modules_with(function: object) -> list[ModuleType]:
    # Not by getattr: it would load what a module loads lazily.
    found = [module for module in list(sys.modules.values()) if isinstance(module, ModuleType)]
    return [module for module in found if vars(module).get(_NAME) is function]
