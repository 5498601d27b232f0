"""What a user writes for a hyperparameter in Python: functions that return its form in the configuration."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from det_native.errors import ArgumentError


def Constant(value: Any) -> dict[str, Any]:  # noqa: N802 (the documented name)
    """Return a hyperparameter that has the same value in every trial.

    Parameters
    ----------
    value
        Number, text, boolean, list or dictionary.
    """
    return {"type": "const", "val": value}


def Integer(minval: int, maxval: int, count: int | None = None) -> dict[str, Any]:  # noqa: N802
    """Return a whole-number hyperparameter.

    Parameters
    ----------
    minval, maxval : int
        Bounds, both included.
    count : int, optional
        Points of a grid search over it.
    """
    return _range("int", minval, maxval, count)


def Double(minval: float, maxval: float, count: int | None = None) -> dict[str, Any]:  # noqa: N802
    """Return a real-number hyperparameter.

    Parameters
    ----------
    minval, maxval : float
        Bounds.
    count : int, optional
        Points of a grid search over it.
    """
    return _range("double", minval, maxval, count)


def Log(  # noqa: N802
    minval: float, maxval: float, base: float = 10.0, count: int | None = None
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
    """
    return {**_range("log", minval, maxval, None), "base": base, **({} if count is None else {"count": count})}


def Categorical(vals: Sequence[Any]) -> dict[str, Any]:  # noqa: N802
    """Return a hyperparameter that takes one of the given values.

    Parameters
    ----------
    vals : sequence
        The values, of any kind that JSON can hold.

    Raises
    ------
    ArgumentError
        If it is no list of values; text would come apart into its letters.
    """
    if isinstance(vals, str | bytes | Mapping) or not isinstance(vals, Iterable):
        raise ArgumentError(f"vals must be a list of the values to choose from, not {vals!r}.")
    return {"type": "categorical", "vals": list(vals)}


def _range(kind: str, minval: float, maxval: float, count: int | None) -> dict[str, Any]:
    written: dict[str, Any] = {"type": kind, "minval": minval, "maxval": maxval}
    if count is not None:
        written["count"] = count
    return written


__all__ = ["Categorical", "Constant", "Double", "Integer", "Log"]
