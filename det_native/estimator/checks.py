"""What an estimator, its specs and its serving functions have to be."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import tensorflow as tf

from det_native.errors import CallTypeError, CallValueError, TrialDefinitionError

Wrong = tuple[type[CallTypeError | CallValueError], str]


def check_estimator(estimator: Any, what: str, do: str = "return") -> None:
    """Refuse what is no estimator, or one that spreads its training over devices by itself.

    Parameters
    ----------
    estimator
    what : str
        Who gave it, for messages: ``Iris.build_estimator() returned``.
    do : {"return", "give"}
        What to do with the right one.
    """
    if not isinstance(estimator, tf.estimator.Estimator | tf.compat.v1.estimator.Estimator):
        raise CallTypeError(f"{what} {_named(estimator)}; {do} a tf.estimator.Estimator.")
    if estimator.config.cluster_spec.as_dict():
        raise CallValueError(
            f"{what} an estimator whose RunConfig has the roles of TF_CONFIG: unset that variable, or leave the "
            "context out and call tf.estimator.train_and_evaluate(), which trains by roles."
        )
    for strategy in ("train_distribute", "eval_distribute"):
        if getattr(estimator.config, strategy) is not None:
            raise TrialDefinitionError(
                f"{what} an estimator whose RunConfig has {strategy}: leave it out, and set resources.slots_per_trial "
                "in the configuration, by which a trial is spread over slots."
            )


def check_spec(spec: Any, kind: type, what: str, do: str = "return") -> None:
    """Refuse what is not a TrainSpec, or an EvalSpec, or has in it what that cannot have; see :func:`check_estimator`.

    TensorFlow checks what a spec is made of, but not what ``_replace()`` puts into it.
    """
    if not isinstance(spec, kind):
        raise CallTypeError(f"{what} {_named(spec)}; {do} a tf.estimator.{kind.__name__}.")
    for error, found in _wrong_in(spec):
        raise error(f"{what} {_named(spec)} whose {found}.")


def check_serving(serving: Any, what: str, do: str = "return") -> None:
    """Refuse anything but functions by name, where a name can be that of a folder; see :func:`check_estimator`."""
    if not isinstance(serving, dict):
        raise TrialDefinitionError(f"{what} {_named(serving)}; {do} a dictionary of functions by name.")
    for name, function in serving.items():
        if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.-]*", name):
            raise TrialDefinitionError(
                f"{what} the name {name!r}, which is to be that of a folder: use letters, digits and underscores."
            )
        if not callable(function):
            raise TrialDefinitionError(
                f"{what} {_named(function)} for {name!r}; give a function, such as those that "
                "tf.estimator.export.build_raw_serving_input_receiver_fn() returns."
            )


def _wrong_in(spec: Any) -> Iterator[Wrong]:
    """Yield what is wrong with the parts of a spec, as ``steps is 0; give ...``, with the error that says so."""
    if not callable(spec.input_fn):
        yield CallTypeError, f"input_fn is {_named(spec.input_fn)}; give a function that returns a tf.data.Dataset"
    for hook in spec.hooks or ():
        if not isinstance(hook, tf.estimator.SessionRunHook):
            yield CallTypeError, f"hooks have {_named(hook)}; each has to be a tf.estimator.SessionRunHook"
    if isinstance(spec, tf.estimator.TrainSpec):
        if spec.max_steps is not None and not spec.max_steps > 0:
            yield CallValueError, f"max_steps is {spec.max_steps}; give a number above 0, or None"
        return
    if spec.steps is not None and not spec.steps > 0:
        yield CallValueError, f"steps is {spec.steps}; give a number above 0, or None for all of the data"
    if spec.name is not None and not isinstance(spec.name, str):
        yield CallTypeError, f"name is {spec.name!r}; give a text, or None"
    for name in ("start_delay_secs", "throttle_secs"):
        if getattr(spec, name) < 0:
            yield CallValueError, f"{name} is {getattr(spec, name)}; give a number of seconds, 0 or more"
    yield from _wrong_exporters(spec.exporters)


def _wrong_exporters(exporters: Any) -> Iterator[Wrong]:
    seen = set()
    for exporter in exporters or ():
        if not isinstance(exporter, tf.estimator.Exporter):
            yield CallTypeError, f"exporters have {_named(exporter)}; each has to be a tf.estimator.Exporter"
        elif not isinstance(exporter.name, str) or not exporter.name:
            yield (
                CallValueError,
                f"exporters have one whose name is {exporter.name!r}; it is to be that of a folder: give a text",
            )
        elif exporter.name in seen:
            yield (
                CallValueError,
                f"exporters have two of the name {exporter.name!r}, which is that of a folder; name them differently",
            )
        else:
            seen.add(exporter.name)


def _named(value: Any) -> str:
    return "None" if value is None else f"a {type(value).__name__}"
