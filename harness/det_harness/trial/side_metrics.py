"""Validation metrics that trials are not compared by: recorded as numbers, else as JSON up to a size, else left out."""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from det_harness.trial.metrics import described, scalar
from det_native.schema.reports import LONGEST_VALUE, LONGEST_VALUES

logger = logging.getLogger("det_harness")

_DEEPEST = 20


class UnrecordableError(Exception):
    """A value cannot be recorded; the text says why."""


class SideMetrics:
    """Makes of what validations return what is recorded, and says once of each metric why it is left out.

    Parameters
    ----------
    quiet : bool
        Whether to say nothing: another rank says it.
    """

    def __init__(self, *, quiet: bool = False) -> None:
        self._quiet = quiet
        self._left_out: set[str] = set()

    def recorded(self, metrics: Mapping[str, Any], owner: str, verb: str = "return") -> dict[str, Any]:
        """Return the metrics that can be recorded: numbers, and others as JSON has them."""
        found: dict[str, Any] = {}
        length = 0
        for name, value in metrics.items():
            try:
                recorded = recordable(value)
                if not isinstance(recorded, float):
                    length += len(json.dumps(recorded))
                    if length > LONGEST_VALUES:
                        raise UnrecordableError(
                            f"the values of one validation that are no numbers have more than {LONGEST_VALUES:,} "
                            "characters together, as JSON"
                        )
            except UnrecordableError as error:
                self.leave_out(name, f"{owner} {verb}ed {described(value)} for it: {error}")
            else:
                found[name] = recorded
        return found

    def leave_out(self, name: str, why: str) -> None:
        """Say once that a metric is left out."""
        if name in self._left_out:
            return
        self._left_out.add(name)
        if not self._quiet:
            logger.warning("The metric '%s' is not recorded. %s.", name, why)


def recordable(value: Any) -> Any:
    """Return a value as it is recorded: a number as a float, anything else in the types of JSON.

    Raises
    ------
    UnrecordableError
        If it is None, too long, or JSON has nothing like it.
    """
    number = scalar(value)
    if number is not None:
        return number
    if value is None:
        raise UnrecordableError("there is no value to record")
    return _checked_length(_plain(value, 0))


def reduced(
    values: Sequence[Any], weights: Sequence[int], reduce: Callable[[Sequence[float], Sequence[int]], float]
) -> Any:
    """Reduce what a metric is in each batch to one value.

    Numbers are reduced as they are; of lists of equal lengths and dictionaries of equal keys, each part is. What is the
    same in all batches stays so. Batches without a value, None, count for nothing.

    Raises
    ------
    UnrecordableError
        If there is no such value.
    """
    pairs = [(value, weight) for value, weight in zip(values, weights, strict=True) if value is not None]
    if not pairs:
        raise UnrecordableError("all are None")
    values, weights = [value for value, _ in pairs], [weight for _, weight in pairs]
    first = values[0]
    if all(_is_number(value) for value in values):
        return reduce([float(value) for value in values], weights)
    if all(isinstance(value, list) and len(value) == len(first) for value in values):
        return [reduced(parts, weights, reduce) for parts in zip(*values, strict=True)]
    if all(isinstance(value, dict) and value.keys() == first.keys() for value in values):
        return {key: reduced([value[key] for value in values], weights, reduce) for key in first}
    if all(value == first for value in values):
        return first
    raise UnrecordableError(
        "those of different batches are unlike and no numbers, so that no value stands for all: make one in "
        "evaluate_full_dataset(), or with a reducer of context.wrap_reducer()"
    )


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float)


def _plain(value: Any, depth: int) -> Any:
    """Return a value in the types of JSON; not-a-number and infinities stay floats."""
    if value is None or type(value) in (bool, float):
        return value
    if isinstance(value, str):
        return _text(str(value))
    if isinstance(value, bytes):
        return _text(_decoded(value))
    number = scalar(value)
    if number is not None and not _is_array(value):
        return int(value) if isinstance(value, int) and not isinstance(value, bool) else number
    if depth >= _DEEPEST:
        raise UnrecordableError(f"it is nested more than {_DEEPEST} levels deep")
    if isinstance(value, Mapping):
        return {_key(key): _plain(part, depth + 1) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return _parts(value, depth)
    if _is_array(value):
        return _plain(_listed(value), depth)
    raise UnrecordableError(f"JSON has nothing like {type(value).__name__}")


def _parts(values: Sequence[Any], depth: int) -> list[Any]:
    if 2 * len(values) > LONGEST_VALUE:  # each has a character at least, and what parts it from the next one
        raise UnrecordableError(f"it has more than {LONGEST_VALUE:,} characters as JSON")
    return [_plain(part, depth + 1) for part in values]


def _is_array(value: Any) -> bool:
    """Whether a value is an array or tensor of whatever library: they all have a shape and make lists or arrays."""
    return hasattr(value, "shape") and (hasattr(value, "tolist") or hasattr(value, "numpy"))


def _listed(value: Any) -> Any:
    """Return the values of an array or tensor in lists."""
    if 2 * math.prod(value.shape) > LONGEST_VALUE:
        raise UnrecordableError(f"it has more than {LONGEST_VALUE:,} characters as JSON")
    try:
        return value.tolist() if hasattr(value, "tolist") else value.numpy().tolist()
    except Exception as error:  # a tensor that is sparse, or has no values
        raise UnrecordableError(f"it cannot be read: {error}") from error


def _key(key: Any) -> str:
    if isinstance(key, str):
        return _text(str(key))
    if isinstance(key, bytes):
        return _text(_decoded(key))
    if isinstance(key, int | float) or scalar(key) is not None:  # the number of a class, say
        return str(getattr(key, "item", lambda: key)())
    raise UnrecordableError(f"it has a key of type {type(key).__name__}, and JSON has texts there")


def _decoded(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError as error:
        raise UnrecordableError("it is bytes that are no text") from error


def _text(value: str) -> str:
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise UnrecordableError("it has text that is no valid Unicode") from error
    return value


def _checked_length(value: Any) -> Any:
    length = len(json.dumps(value))
    if length > LONGEST_VALUE:
        raise UnrecordableError(f"as JSON it has {length:,} characters, and at most {LONGEST_VALUE:,} are recorded")
    return value
