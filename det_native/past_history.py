"""Metrics by epoch of a training that is over, as they travel with a program whose later cells read them."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from det_native.schema.rest import EpochRow

_WORDS = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


@dataclass(frozen=True)
class PastHistory:
    """What a training has left: metrics by epoch, the numbers of the epochs, and what callbacks were told."""

    metrics: Mapping[str, list[Any]]
    epoch: Sequence[int]
    params: Mapping[str, int]


def encode(rows: Sequence[EpochRow], metrics: Mapping[str, Sequence[float]]) -> bytes:
    """Return the rows that the framework's own history had, or without any the metrics by epoch, as bytes."""
    recorded = [row.model_dump(mode="json") for row in rows]
    content = {"rows": recorded} if recorded else {"metrics": {name: list(values) for name, values in metrics.items()}}
    return json.dumps(content, separators=(",", ":")).encode()


def decode(content: bytes) -> PastHistory:
    """Return what :func:`encode` was given."""
    read = json.loads(content)
    if "rows" not in read:
        metrics = read["metrics"]
        return PastHistory(metrics, list(range(max(map(len, metrics.values()), default=0))), {})
    rows = [EpochRow.model_validate(row) for row in read["rows"]]
    return PastHistory(recorded_history(rows), [row.epoch for row in rows], rows[-1].params)


def as_number(value: Any) -> Any:
    """Return what a metric's JSON form stands for: not-a-number and infinities travel as words, in lists too."""
    if isinstance(value, list):
        return [as_number(part) for part in value]
    if isinstance(value, dict):
        return {key: as_number(part) for key, part in value.items()}
    return _WORDS.get(value, value) if isinstance(value, str) else value


def recorded_history(epochs: Sequence[EpochRow]) -> dict[str, list[Any]]:
    """Return what the framework's own history had, with the same names in the same order.

    What has several values, such as ``F1Score()`` without an average, is an array, as it is there.
    """
    history: dict[str, list[Any]] = {}
    for row in epochs:
        for name, value in row.logs.items():
            history.setdefault(name, []).append(_as_value(value))
    return history


def _as_value(value: Any) -> Any:
    """Return a number, or what numpy had: its type stands beside its values."""
    if not isinstance(value, dict):
        return as_number(value)
    import numpy as np

    ((kind, values),) = value.items()
    return np.array(as_number(values), dtype=kind)[()]
