"""What a configuration's search will run, before anything runs."""

from __future__ import annotations

import random
from collections import Counter
from typing import TYPE_CHECKING, Any

from det_native.client.tables import table
from det_native.schema.loading import load_config, names
from det_native.search.make import check_search
from det_native.search.simulation import simulate

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from matplotlib.figure import Figure

    from det_native.schema.config import ExperimentConfig

_SEED = 0
# Where it cannot be told how often a trial validates.
_SUPPOSED_VALIDATIONS = 9
_DRAWN = (
    "Who is trained on depends on the metrics: this is one course, with metrics drawn at random and trials that take "
    "equally long."
)
# What fit() is given says these where the configuration does not; no search hangs on them.
_OF_THE_CALL = {
    "searcher.max_length": {"batches": 100},
    "hyperparameters.global_batch_size": 1,
    "records_per_epoch": 1,
}
_SUPPOSED = (
    "The configuration has no searcher.max_length, so {} are supposed here; what fit() is given may say another length."
)


class SearchPreview:
    """The trials that a search will run, and what they cost; printed, it is a table.

    Attributes
    ----------
    searcher : str
        Its name.
    unit : str
        ``"batches"``, ``"records"`` or ``"epochs"``: of all lengths here.
    trials : list of list of int
        Of each trial: how long it has trained in total at the end of each stage.
    """

    def __init__(
        self, searcher: str, unit: str, trials: list[list[int]], max_length: int, *, supposed: bool = False
    ) -> None:
        self.searcher, self.unit, self.trials = searcher, unit, trials
        self._max_length, self._supposed = max_length, supposed

    @property
    def units(self) -> int:
        """The training of all trials together."""
        return sum(stages[-1] for stages in self.trials)

    @property
    def stages(self) -> list[tuple[int, list[int]]]:
        """How many trials have these stages; those that train longest are the last."""
        counted = Counter(tuple(stages) for stages in self.trials)
        ordered = sorted(counted.items(), key=lambda pair: (pair[0][-1], len(pair[0])))
        return [(count, list(stages)) for stages, count in ordered]

    def to_json(self) -> dict[str, Any]:
        """Return the preview as data that JSON can hold."""
        stages = [{"trials": count, "trained_to": list(units)} for count, units in self.stages]
        return {
            "searcher": self.searcher,
            "unit": self.unit,
            "trials": len(self.trials),
            "units": self.units,
            "stages": stages,
        }

    def plot(self) -> Figure:
        """Draw a bar for each trial, as long as it trains, with a mark at the end of each stage.

        Returns
        -------
        matplotlib.figure.Figure
        """
        from matplotlib.figure import Figure

        count = len(self.trials)
        figure = Figure(figsize=(7.0, min(max(1.6 + 0.16 * count, 2.4), 8.0)), layout="constrained")
        axes = figure.subplots()
        ordered = sorted(range(count), key=lambda trial: (-self.trials[trial][-1], trial))
        for row, trial in enumerate(ordered):
            stages = self.trials[trial]
            axes.barh(row, stages[-1], height=0.8, color="#4c78a8")
            if count <= 100:
                axes.plot(stages, [row] * len(stages), "|", color="white", markersize=6)
        axes.invert_yaxis()
        axes.set_yticks(range(count), [f"trial {trial + 1}" for trial in ordered] if count <= 30 else [""] * count)
        if count > 30:
            axes.set_yticks([])
            axes.set_ylabel(f"{count:,} trials")
        axes.set_xlabel(self.unit)
        axes.set_title(self._first_line(), fontsize="medium")
        return figure

    def _first_line(self) -> str:
        trials = "1 trial" if len(self.trials) == 1 else f"{len(self.trials):,} trials"
        whole = len(self.trials) * self._max_length
        share = "" if self.units >= whole else f", {self.units / whole:.0%} of training all to the end"
        return f"{self.searcher}: {trials}, {self.units:,} {self.unit} in all{share}"

    def __str__(self) -> str:
        rows = [(count, ", then ".join(f"{units:,}" for units in stages)) for count, stages in self.stages]
        lines = [self._first_line(), table(("trials", f"{self.unit} trained"), rows)]
        if len(self.stages) > 1:
            lines.append(_DRAWN)
        if self._supposed:
            lines.append(_SUPPOSED.format(f"{self._max_length} {self.unit}"))
        return "\n".join(lines)

    __repr__ = __str__


def _validations(config: ExperimentConfig) -> int:
    """Return how often a trial validates before its end, as far as lengths of different units tell."""
    length, period = config.searcher.max_length, config.min_validation_period
    if period.units and period.unit is length.unit:
        return max((length.units - 1) // period.units, 0)
    return min(length.units - 1, _SUPPOSED_VALIDATIONS)


def preview_search(config: Mapping[str, Any] | str | Path | ExperimentConfig) -> SearchPreview:
    """Tell what a configuration's search will run and cost, without a master and without training.

    Parameters
    ----------
    config : mapping, str, Path or ExperimentConfig
        As for ``init()`` and ``create()``.

    Returns
    -------
    SearchPreview
        Printed, it is a table; ``plot()`` draws it.

    Raises
    ------
    ConfigurationError
        Listing every problem of the configuration.
    MissingDependencyError
        If the searcher is Optuna's, and Optuna is not installed here.

    Examples
    --------
    >>> searcher = {"name": "random", "metric": "loss", "max_length": {"batches": 100}, "max_trials": 4}
    >>> preview_search({"searcher": searcher, "hyperparameters": {"lr": 0.1}})
    random: 4 trials, 400 batches in all
    trials  batches trained
         4  100
    """
    loaded = load_config(config, local=True, processes=True, defaults=_OF_THE_CALL, warn=False)
    check_search(loaded)
    if loaded.reproducibility.experiment_seed is None:
        loaded = loaded.with_seed(_SEED)
    values = random.Random(loaded.reproducibility.experiment_seed)
    trials = simulate(loaded, lambda request, trial: values.random(), validations=_validations(loaded))
    searcher = loaded.searcher
    stages = [trial.units for trial in trials]
    # Of a population, the length is that of its rounds, which every configuration says.
    supposed = "max_length" in type(searcher).model_fields and not names(config, "searcher.max_length")
    length = searcher.max_length
    return SearchPreview(searcher.name, str(length.unit.value), stages, length.units, supposed=supposed)
