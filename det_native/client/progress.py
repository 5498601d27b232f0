"""How far an experiment is, from its events. Pure: events in, a fraction and a sentence out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from det_native.client.short_forms import format_value
from det_native.client.state_words import experiment_word
from det_native.past_history import as_number
from det_native.schema import rest
from det_native.schema.metric_names import companions
from det_native.schema.states import ExperimentState, TrialState

PAUSED = "paused (experiment.resume() goes on)"


@dataclass
class TrialProgress:
    """What is known of one trial."""

    batches: int = 0
    target: int = 0
    state: TrialState = TrialState.QUEUED
    number: int = 0

    @property
    def fraction(self) -> float:
        """Share of the trial's batches that are done, 0 to 1."""
        if self.state is TrialState.COMPLETED:
            return 1.0
        return min(self.batches / self.target, 1.0) if self.target > 0 else 0.0


@dataclass
class ExperimentProgress:
    """What is known of an experiment; `apply` takes the next event."""

    experiment: rest.Experiment
    trials: dict[int, TrialProgress] = field(default_factory=dict)
    metrics: dict[str, Any] = field(default_factory=dict)
    _warnings: dict[int, str] = field(default_factory=dict)
    _untold: list[str] = field(default_factory=list)

    @property
    def ended(self) -> bool:
        """Whether nothing more will happen."""
        return self.experiment.state.terminal

    @property
    def fraction(self) -> float:
        """Share of the experiment that is done, 0 to 1."""
        if self.experiment.state is ExperimentState.COMPLETED:
            return 1.0
        expected = max(self.experiment.trials, len(self.trials), 1)
        by_trials = sum(trial.fraction for trial in self.trials.values()) / expected
        return min(max(self.experiment.progress, by_trials if self._number_is_fixed else 0.0), 1.0)

    @property
    def text(self) -> str:
        """State, trials done and the newest metrics, in a few words."""
        state = self.experiment.state
        words = [PAUSED if state is ExperimentState.PAUSED else experiment_word(self.experiment).lower()]
        words.append(self.experiment.notice)
        if self.experiment.trials > 1:
            done = sum(trial.state.terminal for trial in self.trials.values())
            words.append(f"{done}/{self.experiment.trials} trials")
        if self.experiment.best_validation is not None and self.experiment.trials > 1:
            words.append(f"best {self.experiment.metric} {format_value(self.experiment.best_validation)}")
        else:
            words.append(newest_metrics(self.metrics, self.experiment.metric))
        return ", ".join(word for word in words if word)

    def update_trials(self, trials: list[rest.Trial]) -> None:
        """Take over the trials as they are now."""
        for trial in trials:
            self._trial(trial)

    def apply(self, event: rest.Event) -> rest.UserErrorInfo | None:
        """Take the next event; return the user's error that has to be shown, if that is what it is."""
        if event.type == "experiment":
            self.experiment = rest.Experiment.model_validate(event.data)
        elif event.type == "trial":
            self._trial(rest.Trial.model_validate(event.data))
        elif event.type == "metrics" and event.trial_id is not None:
            self._row(event.trial_id, event.data)
        elif event.type == "error":
            return rest.UserErrorInfo.model_validate(event.data)
        return None

    def number_of(self, trial_id: int | None) -> int | None:
        """Return the number of a trial inside the experiment; its id while that is not known, None for None."""
        known = None if trial_id is None else self.trials.get(trial_id)
        return trial_id if known is None else known.number or trial_id

    def new_warnings(self) -> list[str]:
        """Return what trials have said since the last call that is no failure: ``Trial 3: The loss became NaN ...``."""
        untold, self._untold = self._untold, []
        return untold

    @property
    def _number_is_fixed(self) -> bool:
        searcher = self.experiment.config.get("searcher") or {}
        return searcher.get("name") in {"single", "random", "grid"}

    def _trial(self, trial: rest.Trial) -> None:
        known = self.trials.setdefault(trial.id, TrialProgress())
        known.batches = max(known.batches, trial.batches)
        known.target, known.state, known.number = trial.target_batches, trial.state, trial.shown_number
        if trial.warning and self._warnings.get(trial.id) != trial.warning:
            self._warnings[trial.id] = trial.warning
            self._untold.append(f"Trial {trial.shown_number}: {trial.warning}")

    def _row(self, trial_id: int, data: dict[str, Any]) -> None:
        known = self.trials.setdefault(trial_id, TrialProgress())
        known.batches = max(known.batches, int(data.get("batch") or 0))
        self.metrics |= data.get("metrics") or {}


def newest_metrics(metrics: Mapping[str, Any], searched: str | None) -> str:
    """Return the first numbers among metrics in a few words, the searcher's metric before all others."""
    drawn = companions(metrics).values()
    names = sorted((name for name in metrics if name not in drawn), key=lambda name: name != searched)
    numbers = [(name, as_number(metrics[name])) for name in names]
    shown = [f"{name} {format_value(value)}" for name, value in numbers if isinstance(value, int | float)]
    return ", ".join(shown[:3])
