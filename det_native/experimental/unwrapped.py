"""Tells a user whose Keras model trained in the kernel, while it was meant for the cluster, that it was not wrapped."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from det_native.display.environment import running_shell
from det_native.experimental.cell_end import at_the_end

if TYPE_CHECKING:
    from det_native.keras import TFKerasNativeContext


_latest: list[TFKerasNativeContext] = []


def tell_of_unwrapped_models(context: TFKerasNativeContext) -> None:
    """Look after every cell, or at the script's end, whether a model was trained past the context.

    Keras calls nobody when a plain model begins to train. What is told is told once, and only until the context has
    wrapped a model, or another one has begun: after that, a model that is not wrapped is meant to train here.
    """
    before = _histories_of(_namespace())
    _latest[:] = [context]

    def check() -> None:
        if context.wrapped or _latest[0] is not context:
            return
        histories = _histories_of(_namespace())
        name = next((name for name, history in histories.items() if history is not before.get(name)), "")
        if name:
            print(
                f"{name} was trained in this process, and nothing was submitted: the model is not wrapped. Write "
                f"{name} = context.wrap_model({name}) right after it is made, and {name}.fit() trains it on the "
                "cluster.",
                file=sys.stderr,
            )
        elif running_shell() is not None:
            at_the_end(check)

    at_the_end(check)


def _namespace() -> Mapping[str, Any]:
    shell = running_shell()
    namespace: Mapping[str, Any] = vars(sys.modules["__main__"]) if shell is None else shell.user_ns
    return namespace


def _histories_of(namespace: Mapping[str, Any]) -> dict[str, Any]:
    """Return what Keras keeps of the last training of each model of a namespace, of those that were trained here."""
    import tensorflow as tf

    models = {name: value for name, value in list(namespace.items()) if isinstance(value, tf.keras.Model)}
    histories = {name: getattr(model, "history", None) for name, model in models.items() if name[:1] != "_"}
    return {name: history for name, history in histories.items() if getattr(history, "epoch", None)}
