"""What a user writes for a hyperparameter in Python: functions that return its form in the configuration."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from det_native.errors import ArgumentError

Condition: TypeAlias = Mapping[str, Any]


def Constant(value: Any, when: Condition | None = None) -> dict[str, Any]:  # noqa: N802 (the documented name)
    """Return a hyperparameter that has the same value in every trial.

    Parameters
    ----------
    value
        Number, text, boolean, list or dictionary.
    when : mapping, optional
        It is there only in trials in which other hyperparameters have these values: ``{"optimizer": "sgd"}``, or a list
        of values. This is so of all kinds of hyperparameters.
    """
    return _conditional({"type": "const", "val": value}, when)


def Integer(  # noqa: N802
    minval: int, maxval: int, count: int | None = None, when: Condition | None = None
) -> dict[str, Any]:
    """Return a whole-number hyperparameter.

    Parameters
    ----------
    minval, maxval : int
        Bounds, both included.
    count : int, optional
        Points of a grid search over it.
    when : mapping, optional
        See :func:`Constant`.
    """
    return _conditional(_range("int", minval, maxval, count), when)


def Double(  # noqa: N802
    minval: float, maxval: float, count: int | None = None, when: Condition | None = None
) -> dict[str, Any]:
    """Return a real-number hyperparameter.

    Parameters
    ----------
    minval, maxval : float
        Bounds.
    count : int, optional
        Points of a grid search over it.
    when : mapping, optional
        See :func:`Constant`.
    """
    return _conditional(_range("double", minval, maxval, count), when)


def Log(  # noqa: N802
    minval: float, maxval: float, base: float = 10.0, count: int | None = None, when: Condition | None = None
) -> dict[str, Any]:
    """Return a hyperparameter whose logarithm is uniform: ``base ** x`` with `x` between the bounds.

    Parameters
    ----------
    minval, maxval : float
        Bounds of the exponent: ``Log(-4, -1)`` is 0.0001 to 0.1.
    base : float
        Base of the power, 10 by default.
    count : int, optional
        Points of a grid search over it, evenly spaced in the exponent.
    when : mapping, optional
        See :func:`Constant`.
    """
    counted = {} if count is None else {"count": count}
    return _conditional({**_range("log", minval, maxval, None), "base": base, **counted}, when)


def Categorical(vals: Sequence[Any], when: Condition | None = None) -> dict[str, Any]:  # noqa: N802
    """Return a hyperparameter that takes one of the given values.

    Parameters
    ----------
    vals : sequence
        The values, of any kind that JSON can hold.
    when : mapping, optional
        See :func:`Constant`.

    Raises
    ------
    ArgumentError
        If it is no list of values; text would come apart into its letters.
    """
    if isinstance(vals, str | bytes | Mapping) or not isinstance(vals, Iterable):
        raise ArgumentError(f"vals must be a list of the values to choose from, not {vals!r}.")
    return _conditional({"type": "categorical", "vals": list(vals)}, when)


def _conditional(written: dict[str, Any], when: Condition | None) -> dict[str, Any]:
    return written if when is None else {**written, "when": dict(when)}


def _range(kind: str, minval: float, maxval: float, count: int | None) -> dict[str, Any]:
    written: dict[str, Any] = {"type": kind, "minval": minval, "maxval": maxval}
    if count is not None:
        written["count"] = count
    return written


__all__ = ["Categorical", "Constant", "Double", "Integer", "Log"]
