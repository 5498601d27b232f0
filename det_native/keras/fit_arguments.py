"""The arguments of a call of ``fit``: bound to Keras's signature, and their numbers checked."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from det_native.errors import ArgumentError, SignatureError
from det_native.keras.generations import internals
from det_native.schema.signatures import checked_wait

_COUNTS = ("batch_size", "steps_per_epoch", "validation_steps", "validation_batch_size")
_NAMES_OF_FIT = {"generator": "x"}


def bind(
    model: Any, method: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> tuple[dict[str, Any], frozenset[str], dict[str, Any]]:
    """Bind the arguments of a call.

    Returns
    -------
    arguments : dict
        Every argument of ``Model.fit`` by name, defaults filled in.
    given : frozenset of str
        The names of those that were written.
    extra : dict
        Further keyword arguments, for a model class with a ``fit`` of its own.

    Raises
    ------
    SignatureError
        If they do not fit the signature.
    """
    own = getattr(type(model), method) is not getattr(tf.keras.Model, method)
    signature = inspect.signature(getattr(tf.keras.Model, method))
    extra = {name: value for name, value in kwargs.items() if own and name not in signature.parameters}
    try:
        bound = signature.bind(model, *args, **{name: value for name, value in kwargs.items() if name not in extra})
    except TypeError as error:
        names = [*[*signature.parameters][1:], "wait"]
        raise SignatureError(f"{method}() {_misfit(error, kwargs, names)}") from None
    written = {_NAMES_OF_FIT.get(name, name): value for name, value in list(bound.arguments.items())[1:]}
    defaults = {
        name: parameter.default
        for name, parameter in inspect.signature(tf.keras.Model.fit).parameters.items()
        if parameter.default is not inspect.Parameter.empty
    }
    return {**internals.QUEUE_DEFAULTS, **defaults, **written}, frozenset(written), extra


def taken_wait(model: Any, method: str, kwargs: dict[str, Any]) -> bool | None:
    """Take ``wait`` out of the keyword arguments of a call; None if it is not given, or the class's own ``fit`` has it.

    Raises
    ------
    ArgumentError
        If it is neither True nor False.
    """
    if "wait" in inspect.signature(getattr(type(model), method)).parameters:
        return None
    return checked_wait(method, kwargs.pop("wait", None))


def _misfit(error: TypeError, keywords: Iterable[str], known: Sequence[str]) -> str:
    """Return what does not fit a signature, with the name that was probably meant."""
    unknown = [name for name in keywords if name not in known]
    if not unknown:
        return f"does not take these arguments: {error}."
    if unknown[0] in internals.QUEUE_DEFAULTS:
        return f"takes no argument {unknown[0]!r} in Keras 3: give it to the PyDataset or a SequenceAdapter."
    close = difflib.get_close_matches(unknown[0], known, n=1, cutoff=0.5)
    meant = f" Did you mean {close[0]}?" if close else f" It takes: {', '.join(known)}."
    return f"takes no argument {unknown[0]!r}.{meant}"


def check_numbers(arguments: Mapping[str, Any]) -> None:
    """Refuse numbers that make no sense, and arguments of the wrong kind.

    Raises
    ------
    ArgumentError
        Naming all of them.
    """
    problems = [*_wrong_kinds(arguments)]
    if problems:
        raise ArgumentError(f"fit(): {'; '.join(problems)}.")
    epochs, initial_epoch = arguments["epochs"], arguments["initial_epoch"]
    if epochs <= initial_epoch:
        problems.append(f"epochs={epochs} must be above initial_epoch={initial_epoch}: epochs is the last epoch")
    for name in _COUNTS:
        value = arguments[name]
        if value is not None and value < 1:
            problems.append(f"{name}={value} must be at least 1")
    split = arguments["validation_split"] or 0.0
    if not 0.0 <= split < 1.0:
        problems.append(f"validation_split={split} must be at least 0 and below 1")
    if not isinstance(arguments["validation_freq"], Iterable) and arguments["validation_freq"] < 1:
        problems.append(f"validation_freq={arguments['validation_freq']} must be at least 1")
    if problems:
        raise ArgumentError(f"fit(): {'; '.join(problems)}.")


def _wrong_kinds(arguments: Mapping[str, Any]) -> Iterator[str]:
    for name in ("epochs", "initial_epoch", *_COUNTS):
        value = arguments[name]
        if value is None and name in _COUNTS:
            continue
        whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
        if not whole and not (isinstance(value, float) and value.is_integer()):
            yield f"{name} must be a whole number, not {value!r}"
    split, frequency, callbacks = (arguments[name] for name in ("validation_split", "validation_freq", "callbacks"))
    if split is not None and not isinstance(split, int | float | np.number):
        yield f"validation_split must be a number, not {split!r}"
    if not isinstance(frequency, int | np.integer | Iterable) or isinstance(frequency, str):
        yield f"validation_freq must be a whole number or a list of epochs, not {frequency!r}"
    if isinstance(callbacks, tf.keras.callbacks.CallbackList):
        return
    for callback in callbacks if isinstance(callbacks, list | tuple) else [callbacks]:
        if callback is not None and not isinstance(callback, tf.keras.callbacks.Callback):
            yield f"callbacks must be instances of tf.keras.callbacks.Callback, not {callback!r}"
