"""How much each hyperparameter has to do with a metric: a functional analysis of variance (fANOVA), by Optuna."""

from __future__ import annotations

import importlib.util
import json
import math
import random
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from det_native.schema.importance import HyperparameterImportance, Importance

#: Of fewer trials nothing can be said.
LEAST_TRIALS = 4
#: From so many on the numbers are of use.
SURE_TRIALS = 20
#: Of more trials, so many are drawn: the time grows with them.
MOST_TRIALS = 1_000
MOST_CATEGORIES = 50
_MOST_NAMED = 5
_LONGEST_NAME = 60
# The analysis is Python, of each node of each tree: deeper trees take minutes, and change the third digit.
_TREES = 16
_DEPTH = 6
_NEEDED = {"optuna": "optuna", "sklearn": "scikit-learn"}

Values = Mapping[str, Any]


def importance(
    metric: str, rows: Sequence[tuple[Values, float | None]], logarithmic: frozenset[str] = frozenset()
) -> Importance:
    """Return how much each hyperparameter explains of a metric.

    Parameters
    ----------
    rows : sequence of (mapping, float or None)
        Of each trial its hyperparameters by whole names, and its value of the metric.
    logarithmic : set of str
        Hyperparameters that are searched over powers.
    """
    usable = [(hparams, value) for hparams, value in rows if value is not None and math.isfinite(value)]
    found = Importance(metric=metric, trials=0, total=len(usable))
    missing = [package for module, package in _NEEDED.items() if importlib.util.find_spec(module) is None]
    if missing:
        found.notes.append(
            f"Importance needs {' and '.join(missing)}, which the environment of the master does not have: "
            f"pip install {' '.join(missing)} there, and restart the master."
        )
        return found
    if len(usable) < LEAST_TRIALS:
        found.notes.append(
            f"Importance needs at least {LEAST_TRIALS} trials with a value of this metric; there are {len(usable)}."
        )
        return found
    if len({value for _, value in usable}) < 2:
        found.notes.append("All trials have the same value of this metric: nothing explains a difference.")
        return found
    drawn = usable if len(usable) <= MOST_TRIALS else random.Random(0).sample(usable, MOST_TRIALS)
    columns, notes = _columns([hparams for hparams, _ in drawn], logarithmic)
    found.notes.extend(notes)
    if not columns:
        found.notes.append("No hyperparameter differs between the trials.")
        return found
    if len(usable) < SURE_TRIALS:
        found.notes.append(f"Of {len(usable)} trials the numbers are rough; from {SURE_TRIALS} on they are of use.")
    if len(drawn) < len(usable):
        found.notes.append(f"Worked out from {len(drawn):,} of the {len(usable):,} trials, drawn at random.")
    shares = _analysed(columns, [value for _, value in drawn])
    ordered = sorted(shares.items(), key=lambda pair: (-pair[1], pair[0]))
    found.trials = len(drawn)
    found.importances = [HyperparameterImportance(name=name, importance=share) for name, share in ordered]
    return found


class _Column:
    """Values of one hyperparameter as Optuna takes them."""

    def __init__(self, values: list[Any], distribution: Any) -> None:
        self.values = values
        self.distribution = distribution


def _columns(rows: Sequence[Values], logarithmic: frozenset[str]) -> tuple[dict[str, _Column], list[str]]:
    names = sorted({name for row in rows for name in row})
    columns: dict[str, _Column] = {}
    partial, crowded = [], []
    for name in names:
        if not all(name in row for row in rows):
            partial.append(name)
            continue
        column = _column([row[name] for row in rows], log=name in logarithmic)
        if column is None:
            crowded.append(name)
        elif column.distribution is not None:
            columns[name] = column
    notes = list(
        _left_out(
            [
                (partial, "which not all trials have"),
                (crowded, f"which has more than {MOST_CATEGORIES} values that are no numbers"),
            ]
        )
    )
    return columns, notes


def _column(values: list[Any], *, log: bool) -> _Column | None:
    """Return a column, one without a distribution where all values are the same; None for too many categories."""
    import optuna.distributions as kinds

    if all(map(_is_number, values)):
        low, high = float(min(values)), float(max(values))
        if low == high:
            return _Column(values, None)
        return _Column([float(value) for value in values], kinds.FloatDistribution(low, high, log=log and low > 0))
    texts = [json.dumps(value, sort_keys=True, default=str) for value in values]
    choices = sorted(set(texts))
    if len(choices) > MOST_CATEGORIES:
        return None
    distribution = kinds.CategoricalDistribution(choices) if len(choices) > 1 else None
    return _Column(texts, distribution)


def _is_number(value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # a whole number that no float holds
        return False


def _left_out(groups: Sequence[tuple[list[str], str]]) -> Iterator[str]:
    for names, why in groups:
        if names:
            shown = [name if len(name) <= _LONGEST_NAME else f"{name[:_LONGEST_NAME]}…" for name in names]
            more = f" and {len(shown) - _MOST_NAMED} others" if len(shown) > _MOST_NAMED else ""
            yield f"Left out: {', '.join(shown[:_MOST_NAMED])}{more}, {why}."


def _analysed(columns: Mapping[str, _Column], values: Sequence[float]) -> dict[str, float]:
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    if len(columns) == 1:  # it explains all there is to explain
        return dict.fromkeys(columns, 1.0)
    distributions = {name: column.distribution for name, column in columns.items()}
    study = optuna.create_study()
    study.add_trials(
        [
            optuna.trial.create_trial(
                params={name: column.values[at] for name, column in columns.items()},
                distributions=distributions,
                value=value,
            )
            for at, value in enumerate(values)
        ]
    )
    evaluator = optuna.importance.FanovaImportanceEvaluator(n_trees=_TREES, max_depth=_DEPTH, seed=0)
    shares = optuna.importance.get_param_importances(study, evaluator=evaluator)
    return {name: float(share) for name, share in shares.items()}
