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
_every_call: Handler | None = None
_next_call: Handler | None = None
_running = False
_after: str = ""


def take_next(handler: Handler) -> None:
    """Have calls of TensorFlow's function go to `handler`, until :func:`let_go` ends that.

    Whoever has imported the function by its name before has the other one, too: it is replaced wherever a module holds
    it.

    Parameters
    ----------
    handler : callable
        Takes estimator, train_spec and eval_spec; while it runs, a call is TensorFlow's own.
    """
    global _next_call, _after
    _replace()
    _next_call, _after = handler, ""


def let_go(handler: Handler, after: str = "") -> None:
    """Have calls be again what they were before :func:`take_next` was given `handler`.

    Parameters
    ----------
    handler : callable
        Nothing changes where calls go to another one by now.
    after : str
        What the next call says, once, which TensorFlow runs by itself.
    """
    global _next_call, _after
    if _next_call is handler:
        _next_call, _after = None, after


@contextmanager
def taken_over(handler: Handler) -> Iterator[None]:
    """Have all calls go to `handler` in the block, but those for which :func:`take_next` is called in it."""
    global _every_call, _next_call
    _replace()
    before = _every_call, _next_call
    _every_call, _next_call = handler, None
    try:
        yield
    finally:
        _every_call, _next_call = before


def tensorflows_own(estimator: Any, train_spec: Any, eval_spec: Any) -> Any:
    """Call TensorFlow's function itself."""
    function = tf.estimator.train_and_evaluate if _original is None else _original
    return function(estimator, train_spec, eval_spec)


def _replace() -> None:
    global _original
    if _original is not None:
        return
    # Both are looked up: each is loaded when it is first asked for.
    original = tf.estimator.train_and_evaluate
    holders = [tf.estimator, tf.compat.v1.estimator, *_modules_with(original)]

    @functools.wraps(original)
    def train_and_evaluate(estimator: Any, train_spec: Any, eval_spec: Any) -> Any:
        __tracebackhide__ = True
        global _running, _after
        handler = _next_call or _every_call
        if handler is None or _running:
            if _after and not _running:
                print(_after)
                _after = ""
            return original(estimator, train_spec, eval_spec)
        _running = True
        try:
            return handler(estimator, train_spec, eval_spec)
        finally:
            _running = False

    for holder in holders:
        setattr(holder, _NAME, train_and_evaluate)
    _original = original


def _modules_with(function: object) -> list[ModuleType]:
    # Not by getattr: it would load what a module loads lazily.
    found = [module for module in list(sys.modules.values()) if isinstance(module, ModuleType)]
    return [module for module in found if vars(module).get(_NAME) is function]
