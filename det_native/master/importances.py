"""Importance of hyperparameters, worked out once for each number of finished trials."""

from __future__ import annotations

from collections import OrderedDict

from sqlalchemy import Connection

from det_native.master.store import experiments, summaries, trials
from det_native.master.store.database import Database
from det_native.schema.hyperparameters import LogHyperparameter, leaves, parse_space
from det_native.schema.importance import Importance
from det_native.schema.metric_names import greater_is_better
from det_native.schema.states import MetricKind
from det_native.search.importance import importance

_MOST_KEPT = 200
_Row = tuple[dict[str, object], float | None]


class Importances:
    """Works out importances, seconds of a processor each, and keeps them. Use it from one thread at a time."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._kept: OrderedDict[tuple[int, str, int], Importance] = OrderedDict()

    def of(self, experiment_id: int, metric: str | None, owner: str) -> Importance:
        """Return the importance for a metric, that of the search by default.

        Raises
        ------
        NotFoundError
            If there is no such experiment.
        """
        with self._database.read() as connection:
            experiment = experiments.get(connection, experiment_id, owner)
            name = experiment.metric if metric is None else metric
            rows = _rows(connection, experiment_id, None if name == experiment.metric else name)
            space = parse_space(experiments.config_of(connection, experiment_id).get("hyperparameters") or {})
        powers = frozenset(".".join(path) for path, leaf in leaves(space) if isinstance(leaf, LogHyperparameter))
        key = (experiment_id, name, len(rows))
        found = self._kept.pop(key, None)
        if found is None:
            found = importance(name, rows, powers)
        self._kept[key] = found
        while len(self._kept) > _MOST_KEPT:
            self._kept.popitem(last=False)
        return found


def _rows(connection: Connection, experiment_id: int, metric: str | None) -> list[_Row]:
    """Return hyperparameters and values of the trials that have ended; `metric` None means that of the search."""
    ended = {trial.id: trial for trial in trials.of_experiment(connection, experiment_id) if trial.state.terminal}
    if metric is None:
        return [(flat(trial.hparams), trial.best_validation) for trial in ended.values()]
    rows: list[_Row] = []
    for summary in summaries.of_experiments(connection, None, [experiment_id], best=False):
        if summary.trial_id not in ended:
            continue
        named = [each for each in summary.metrics if each.name == metric]
        # Of a name that both kinds have, the validation's is meant.
        chosen = next((each for each in named if each.kind is MetricKind.VALIDATION), named[0] if named else None)
        value = None if chosen is None else chosen.maximum if greater_is_better(metric) else chosen.minimum
        rows.append((flat(summary.hparams), value))
    return rows


def flat(values: dict[str, object], before: str = "") -> dict[str, object]:
    """Return nested hyperparameters by their whole names, such as ``optimizer.rate``."""
    found: dict[str, object] = {}
    for name, value in values.items():
        if isinstance(value, dict) and value:
            found |= flat(value, f"{before}{name}.")
        else:
            found[before + name] = value
    return found
