"""What an estimator, its specs and its serving functions have to be."""

from __future__ import annotations

import re
from typing import Any

import tensorflow as tf

from det_native.errors import TrialDefinitionError


def check_estimator(estimator: Any, what: str, do: str = "return") -> None:
    """Refuse what is no estimator, or one that spreads its training over devices by itself.

    Parameters
    ----------
    estimator
    what : str
        Who gave it, for messages: ``Iris.build_estimator() returned``.
    do : {"return", "give"}
        What to do with the right one.

    Raises
    ------
    TrialDefinitionError
    """
    if not isinstance(estimator, tf.estimator.Estimator | tf.compat.v1.estimator.Estimator):
        raise TrialDefinitionError(f"{what} {_named(estimator)}; {do} a tf.estimator.Estimator.")
    for strategy in ("train_distribute", "eval_distribute"):
        if getattr(estimator.config, strategy) is not None:
            raise TrialDefinitionError(
                f"{what} an estimator whose RunConfig has {strategy}: leave it out, and set resources.slots_per_trial "
                "in the configuration, by which a trial is spread over slots."
            )


def check_spec(spec: Any, kind: type, what: str, do: str = "return") -> None:
    """Refuse what is not a TrainSpec, or an EvalSpec; see :func:`check_estimator`."""
    if not isinstance(spec, kind):
        raise TrialDefinitionError(f"{what} {_named(spec)}; {do} a tf.estimator.{kind.__name__}.")


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


def _named(value: Any) -> str:
    return "None" if value is None else f"a {type(value).__name__}"
