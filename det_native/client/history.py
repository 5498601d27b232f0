"""Rows of metrics, as users read them: dictionaries by batch, and Keras's history by epoch. Pure functions."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from det_native.client.arguments import SYSTEM
from det_native.client.source import Source
from det_native.frameworks import find_framework
from det_native.past_history import as_number
from det_native.schema.environment import TrialEnvironment
from det_native.schema.metric_names import PREFIXES, companions
from det_native.schema.rest import ExperimentDetail, MetricRow, SystemSample

# What a row has beside metrics: the batch, and where rows of several trials are given, the trial.
_BESIDE_METRICS = ("trial", "batch")


def as_numbers(metrics: Mapping[str, Any]) -> dict[str, Any]:
    """Return metrics by name, as numbers; a metric that is None, that is not measured there, is left out."""
    return {name: as_number(value) for name, value in metrics.items() if value is not None}


def as_dictionary(row: MetricRow) -> dict[str, Any]:
    """Return ``{"batch": n, "name": value, ...}``.

    Metrics that are called as what such a row has beside them get another name: ``"batch (metric)"``.
    """
    metrics = as_numbers(row.metrics)
    return {"batch": row.batch} | {_column(name, metrics): value for name, value in metrics.items()}


def _column(name: str, others: Collection[str]) -> str:
    """Return what a metric is called in a row, unlike what the row has beside metrics and unlike the other metrics."""
    if name in _BESIDE_METRICS:
        name = f"{name} (metric)"
        while name in others:
            name += " (metric)"
    return name


def sample_as_dictionary(sample: SystemSample) -> dict[str, Any]:
    """Return ``{"time": seconds, "rank": n, "name": value, ...}``; what was not measured is left out."""
    return {"time": sample.time, "rank": sample.rank} | sample.metrics


def rows_of(source: Source, trial_id: int, kind: str) -> list[dict[str, Any]]:
    """Return all that was measured of a trial, a dictionary for each time; by time for ``"system"``, else by batch."""
    if kind == SYSTEM:
        return [sample_as_dictionary(sample) for sample in source.system(trial_id)]
    return [as_dictionary(row) for row in source.metrics(trial_id, kind)]


def history_of(
    experiment: ExperimentDetail,
    hparams: dict[str, Any],
    training: Sequence[MetricRow],
    validation: Sequence[MetricRow],
    *,
    completed: bool,
) -> dict[str, list[float]]:
    """Return the rows of a trial in the shape of Keras's ``History.history``.

    Parameters
    ----------
    hparams : dict
        The trial's.
    training, validation : sequence of MetricRow
        In order of batches.
    completed : bool
        Whether the trial has trained as long as the configuration says.

    Returns
    -------
    dict
        Where nothing validates, metrics of the training only, under their own names.
    """
    framework = find_framework(experiment.framework)
    ends = epoch_ends(
        training,
        validation,
        records_per_epoch=int(experiment.config.get("records_per_epoch") or 0),
        batch_size=_batch_size(experiment.config, hparams),
        epochs=_epochs(experiment.config) if completed else None,
        whole_batches=framework is not None and framework.whole_epochs,
    )
    validated = validation if experiment.validates else ()
    return keras_history(training, validated, ends=ends, running=framework is not None and framework.running_means)


def keras_history(
    training: Sequence[MetricRow], validation: Sequence[MetricRow], *, ends: Sequence[int], running: bool
) -> dict[str, list[float]]:
    """Return the metrics in the shape of Keras's ``History.history``: per name one value for each epoch.

    Parameters
    ----------
    training, validation : sequence of MetricRow
        In order of batches.
    ends : sequence of int
        The batch after which each epoch ends, rising; see ``epoch_ends``.
    running : bool
        True for Keras: a training row holds the running means over the epoch so far, so that its last row is the
        epoch's value, and validation metrics are named ``val_...`` (a run without validation data repeats its training
        metrics instead, which are not wanted twice). Otherwise a row is one batch, and the epoch's value their mean.

    Returns
    -------
    dict
        Validation metrics carry the prefix ``val_``. As in Keras, an epoch without a validation has no value there.
    """
    history: dict[str, list[float]] = {}
    for rows in _split(training, ends):
        names = _names(rows)
        drawn = companions(names).values() if running else ()
        for name in [name for name in names if name not in drawn]:
            values = [as_number(row.metrics[name]) for row in rows if row.metrics.get(name) is not None]
            history.setdefault(name, []).append(values[-1] if running else _mean(name, values))
    for rows in _split(validation, ends):
        for name in _names(rows):
            if running and not name.startswith("val_"):
                continue
            last = [as_number(row.metrics[name]) for row in rows if row.metrics.get(name) is not None][-1]
            history.setdefault(validation_name(name), []).append(last)
    return history


def epoch_ends(
    training: Sequence[MetricRow],
    validation: Sequence[MetricRow],
    *,
    records_per_epoch: int,
    batch_size: int,
    epochs: int | None,
    whole_batches: bool,
) -> list[int]:
    """Return the batch after which each epoch ended, up to the last row.

    Parameters
    ----------
    training, validation : sequence of MetricRow
        In order of batches.
    records_per_epoch, batch_size : int
        0 where they are not known: a row then ends at each validation.
    epochs : int or None
        How many epochs the rows make, where that is known.
    whole_batches : bool
        True for Keras, whose epochs end with a smaller batch; else an epoch may end inside a batch, which then counts
        for the next one, unless `epochs` tells that they have ended with a smaller one.
    """
    last = max((row.batch for row in (*training[-1:], *validation[-1:])), default=0)
    if not records_per_epoch or not batch_size:
        ends = sorted({row.batch for row in validation if row.batch > 0})
        return ends if ends and ends[-1] >= last else [*ends, last]
    rounded_up = math.ceil(records_per_epoch / batch_size)
    exact = last // epochs if epochs and last % epochs == 0 else None
    if whole_batches or exact == rounded_up:
        steps = rounded_up if exact is None else exact
        return list(range(steps, last + steps, steps)) if steps else []
    ends = []
    while not ends or ends[-1] < last:
        end = (len(ends) + 1) * records_per_epoch // batch_size
        ends.append(max(end, ends[-1] + 1 if ends else 1))
    return ends


def validation_name(name: str) -> str:
    """Return the name of a validation metric in a history: with ``val_`` unless it says already what it is."""
    return name if name.startswith(("val_", "validation_")) else f"val_{name}"


def _batch_size(config: dict[str, Any], hparams: dict[str, Any]) -> int:
    if "global_batch_size" not in hparams:
        return 0
    return TrialEnvironment(config=config, hparams=hparams).global_batch_size


def _epochs(config: dict[str, Any]) -> int | None:
    length = (config.get("searcher") or {}).get("max_length") or {}
    return length.get("epochs") if isinstance(length, dict) else None


def _mean(name: str, values: Sequence[float]) -> float:
    """Return the mean; of a validation that a loop reports by itself, of those that are a value."""
    if name.startswith(PREFIXES):
        values = [value for value in values if not math.isnan(value)] or values
    # Not fsum, which refuses infinities of both signs.
    return sum(values) / len(values)


def _split(rows: Sequence[MetricRow], ends: Iterable[int]) -> Iterable[list[MetricRow]]:
    """Yield the rows of each epoch; those before the first batch (an initial validation) belong to none."""
    position = 0
    while position < len(rows) and rows[position].batch == 0:
        position += 1
    for end in ends:
        start = position
        while position < len(rows) and rows[position].batch <= end:
            position += 1
        if position > start:
            yield list(rows[start:position])


def _names(rows: Sequence[MetricRow]) -> list[str]:
    return list(dict.fromkeys(name for row in rows for name, value in row.metrics.items() if value is not None))
