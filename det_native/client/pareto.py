"""Trials that are compared by several metrics: what each has come to, and the Pareto front of them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from det_native.client.source import Source
from det_native.schema import rest
from det_native.schema.ranking import score

Values: TypeAlias = tuple[float, ...]


def compared(detail: rest.ExperimentDetail) -> list[tuple[str, bool]]:
    """Return the metrics that trials are compared by, each with whether its smaller values are better."""
    metrics = (detail.config.get("searcher") or {}).get("metrics") or ()
    several = [(str(metric["name"]), bool(metric.get("smaller_is_better", True))) for metric in metrics]
    return several or [(detail.metric, detail.smaller_is_better)]


def last_values(source: Source, detail: rest.ExperimentDetail, trials: Sequence[rest.Trial]) -> dict[int, Values]:
    """Return what the last validation of each trial has come to, in the order of the metrics.

    A trial is left out that has no validation, or one without a number for each metric.
    """
    names = [name for name, _ in compared(detail)]
    found = {}
    for trial in trials:
        rows = source.metrics(trial.id, "validation") if trial.best_validation is not None else []
        values = [score(rows[-1].metrics.get(name), smaller_is_better=True) for name in names] if rows else []
        if values and all(map(math.isfinite, values)):
            found[trial.id] = tuple(values)
    return found


def front(values: Mapping[int, Values], smaller_is_better: Sequence[bool]) -> list[int]:
    """Return those of which no other is as good in every metric and better in one, in the order given."""
    scores = {
        number: tuple(value if smaller else -value for value, smaller in zip(each, smaller_is_better, strict=True))
        for number, each in values.items()
    }
    best: list[tuple[float, ...]] = []  # of those sorted before, none is dominated by a later one
    kept = set()
    for number, mine in sorted(scores.items(), key=lambda pair: pair[1]):
        if not any(other != mine and all(a <= b for a, b in zip(other, mine, strict=True)) for other in best):
            best.append(mine)
            kept.add(number)
    return [number for number in values if number in kept]
