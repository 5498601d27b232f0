"""By what the SDK of Determined orders experiments, trials and checkpoints."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from enum import Enum
from typing import Any, TypeVar

from det_native.client.source import Source
from det_native.client.state_words import shown_state
from det_native.errors import ArgumentError
from det_native.past_history import as_number
from det_native.schema import rest
from det_native.schema.query.ordering import STATE_PLACES
from det_native.schema.registry import OrderBy
from det_native.schema.states import CheckpointState, TrialState

Facts = TypeVar("Facts")
_TRIAL_STATES = list(TrialState)


class ExperimentSortBy(Enum):
    """What experiments are ordered by; of all one user and one pool, whose experiments stay in order of their ids."""

    ID = "id"
    DESCRIPTION = "description"
    START_TIME = "started"
    END_TIME = "ended"
    STATE = "state"
    NUM_TRIALS = "trials"
    PROGRESS = "progress"
    USER = "user"
    NAME = "name"
    FORKED_FROM = "forked_from"
    RESOURCE_POOL = "resource_pool"
    PROJECT_ID = "project"
    CHECKPOINT_SIZE = "checkpoint_size"
    CHECKPOINT_COUNT = "checkpoint_count"
    SEARCHER_METRIC_VAL = "best_validation"


class TrialSortBy(Enum):
    """What trials are ordered by; the days that logs stay are those of all trials of an experiment."""

    ID = "id"
    START_TIME = "started"
    END_TIME = "ended"
    STATE = "state"
    BEST_VALIDATION_METRIC = "best_validation"
    LATEST_VALIDATION_METRIC = "latest_validation"
    BATCHES_PROCESSED = "batches"
    DURATION = "duration"
    RESTARTS = "restarts"
    CHECKPOINT_SIZE = "checkpoint_size"
    LOG_RETENTION_DAYS = "log_retention_days"


class CheckpointSortBy(Enum):
    """What checkpoints are ordered by."""

    UUID = "uuid"
    TRIAL_ID = "trial_id"
    BATCH_NUMBER = "batch"
    END_TIME = "created"
    STATE = "state"
    SEARCHER_METRIC = "searcher_metric"


def checked_order(order_by: object) -> bool:
    """Return whether the greatest comes first; None is the ascending order.

    Raises
    ------
    ArgumentError
        If it is no ``OrderBy``.
    """
    if order_by is None:
        return False
    if not isinstance(order_by, OrderBy):
        raise ArgumentError(f"order_by must be client.OrderBy.ASC or client.OrderBy.DESC, not {order_by!r}.")
    return order_by is OrderBy.DESC


def sorted_experiments(
    source: Source, found: Iterable[rest.Experiment], sort_by: ExperimentSortBy | None, order_by: OrderBy | None
) -> list[rest.Experiment]:
    """Return experiments in order, by their ids where nothing else is said; those without the fact come last."""
    keys: dict[ExperimentSortBy, Callable[[rest.Experiment], Any]] = {
        ExperimentSortBy.STATE: lambda facts: STATE_PLACES[shown_state(facts)],
        ExperimentSortBy.CHECKPOINT_COUNT: lambda facts: len(_existing(source.checkpoints(experiment_id=facts.id))),
        ExperimentSortBy.CHECKPOINT_SIZE: lambda facts: _size(source.checkpoints(experiment_id=facts.id)),
        ExperimentSortBy.NAME: lambda facts: facts.name.lower(),
    }
    key = _key(ExperimentSortBy, sort_by or ExperimentSortBy.ID, keys)
    return _ordered(found, key, descending=checked_order(order_by))


def sorted_trials(
    source: Source, found: Iterable[rest.Trial], sort_by: TrialSortBy, order_by: OrderBy, metric: str
) -> list[rest.Trial]:
    """Return trials in order; see :func:`sorted_experiments`.

    Parameters
    ----------
    metric : str
        The searcher's.
    """
    keys: dict[TrialSortBy, Callable[[rest.Trial], Any]] = {
        TrialSortBy.STATE: lambda facts: _TRIAL_STATES.index(facts.state),
        TrialSortBy.LATEST_VALIDATION_METRIC: lambda facts: _latest(source, facts, metric),
        TrialSortBy.DURATION: _duration,
        TrialSortBy.CHECKPOINT_SIZE: lambda facts: _size(source.checkpoints(trial_id=facts.id)),
    }
    key = _key(TrialSortBy, sort_by, keys)
    return _ordered(found, key, descending=checked_order(order_by))


def sorted_checkpoints(
    found: Iterable[rest.Checkpoint],
    sort_by: str | CheckpointSortBy | None,
    order_by: OrderBy | None,
    max_results: int | None,
    experiment: rest.Experiment,
) -> list[rest.Checkpoint]:
    """Return the checkpoints that exist in order: the best by the searcher's metric first where nothing is said.

    Raises
    ------
    ArgumentError
        If only one of `sort_by` and `order_by` is given, or one of them is of another kind.
    """
    if (sort_by is None) != (order_by is None):
        missing = "sort_by" if sort_by is None else "order_by"
        raise ArgumentError(f"list_checkpoints() takes sort_by and order_by together; {missing} is missing.")
    if sort_by is None:
        sort_by = CheckpointSortBy.SEARCHER_METRIC
        order_by = OrderBy.ASC if experiment.smaller_is_better else OrderBy.DESC
    if max_results is not None and (isinstance(max_results, bool) or not isinstance(max_results, int)):
        raise ArgumentError(f"max_results must be a whole number or None, not {max_results!r}.")
    metric = sort_by if isinstance(sort_by, str) else experiment.metric
    keys = {CheckpointSortBy.SEARCHER_METRIC: lambda facts: _number(facts.metrics.get(metric))}
    by = CheckpointSortBy.SEARCHER_METRIC if isinstance(sort_by, str) else sort_by
    key = _key(CheckpointSortBy, by, keys)
    ordered = _ordered(_existing(found), key, descending=checked_order(order_by), by_id=lambda facts: facts.batch)
    return ordered if max_results is None else ordered[: max(max_results, 0)]


def _key(kind: type[Enum], sort_by: object, keys: dict[Any, Callable[[Any], Any]]) -> Callable[[Any], Any]:
    """Return what orders by a member of `kind`: what `keys` have for it, else the fact of that name."""
    if not isinstance(sort_by, kind):
        names = ", ".join(member.name for member in kind)
        raise ArgumentError(f"sort_by must be one of client.{kind.__name__} ({names}), not {sort_by!r}.")
    name = str(sort_by.value)
    return keys.get(sort_by) or (lambda facts: getattr(facts, name, 0))


def _ordered(
    found: Iterable[Facts],
    key: Callable[[Facts], Any],
    *,
    descending: bool,
    by_id: Callable[[Any], Any] = lambda facts: facts.id,
) -> list[Facts]:
    keyed = [(key(facts), facts) for facts in sorted(found, key=by_id, reverse=descending)]
    having = [pair for pair in keyed if pair[0] is not None]
    having.sort(key=lambda pair: pair[0], reverse=descending)
    return [facts for _, facts in having] + [facts for value, facts in keyed if value is None]


def _number(value: Any) -> float | None:
    """Return a metric as a number that can be compared; None for NaN and what is no number."""
    number = as_number(value)
    if isinstance(number, bool) or not isinstance(number, int | float) or number != number:
        return None
    return float(number)


def _latest(source: Source, trial: rest.Trial, metric: str) -> float | None:
    rows = source.metrics(trial.id, "validation")
    return next((number for row in reversed(rows) if (number := _number(row.metrics.get(metric))) is not None), None)


def _duration(trial: rest.Trial) -> float | None:
    if trial.started is None:
        return None
    started = datetime.fromisoformat(trial.started)
    ended = datetime.fromisoformat(trial.ended) if trial.ended else datetime.now(started.tzinfo)
    return (ended - started).total_seconds()


def _existing(found: Iterable[rest.Checkpoint]) -> list[rest.Checkpoint]:
    return [checkpoint for checkpoint in found if checkpoint.state is CheckpointState.COMPLETED]


def _size(found: Iterable[rest.Checkpoint]) -> int:
    return sum(checkpoint.size for checkpoint in _existing(found))
