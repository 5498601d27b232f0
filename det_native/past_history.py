"""Metrics by epoch of a training that is over, as they travel with a program whose later cells read them."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from det_native.schema.reports import EpochRow

_NUMBER = re.compile(r"_\d+$")
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


class MetricsByEpoch(dict[str, list[Any]]):
    """A dictionary of metrics; one that nobody has named is found by any number that Keras gives such metrics.

    Each run of a cell makes another: ``AUC()`` is ``auc``, then ``auc_1``.

    Examples
    --------
    >>> MetricsByEpoch({"loss": [0.2], "auc_1": [0.5]})["auc"]
    [0.5]
    """

    def __missing__(self, name: str) -> list[Any]:
        found = self._of_another_number(name)
        if found is None:
            raise KeyError(name)
        return self[found]

    def get(self, name: str, default: Any = None) -> Any:
        """Return a metric, or the default."""
        found = name if name in self else self._of_another_number(name)
        return default if found is None else self[found]

    def _of_another_number(self, name: str) -> str | None:
        """Return the only name that differs in the number at its end."""
        if not isinstance(name, str):
            return None
        same = [one for one in self if _NUMBER.sub("", one) == _NUMBER.sub("", name)]
        return same[0] if len(same) == 1 else None

    def __reduce__(self) -> Any:
        return dict, (dict(self),)


def recorded_history(epochs: Sequence[EpochRow]) -> dict[str, list[Any]]:
    """Return what the framework's own history had, with the same names in the same order.

    What has several values, such as ``F1Score()`` without an average, is an array, as it is there.
    """
    history = MetricsByEpoch()
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


def with_stand_ins(kind: type, experiment: Any) -> type:
    """Return Keras's ``History`` with the attributes of an experiment, such as ``wait()``, beside its own."""

    def attribute(self: Any, name: str) -> Any:
        return getattr(experiment, name)

    return type(kind.__name__, (kind,), {"__getattr__": attribute})
