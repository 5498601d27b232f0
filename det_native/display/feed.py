"""What a live view shows, read from a source; of it only what has changed. The shapes are those of the REST interface.

A front end whose Jupyter server knows the master reads all this by itself and never asks the kernel.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from det_native.client.selection import best_trial
from det_native.client.source import Source
from det_native.schema import rest
from det_native.schema.numbers import words
from det_native.schema.states import TrialState

LOG_LINES = 50
# The newest ones: a front end that asks a server has all.
MAX_MEDIA = 1000
# Of each process; the front end asks a server for as many.
SYSTEM_POINTS = 250


class ViewReader:
    """Reads the parts of a view; remembers what was read last.

    Parameters
    ----------
    trial_id : int
        0 for the whole experiment.

    Attributes
    ----------
    size : int
        Characters of what changed last, as JSON.
    outputs_of : int
        The trial whose media and files are told; 0 for the best one.
    """

    def __init__(self, source: Source, experiment_id: int, trial_id: int = 0) -> None:
        self._source = source
        self._experiment_id = experiment_id
        self._trial_id = trial_id
        self._known: dict[str, str] = {}
        self.size = 0
        self.outputs_of = 0
        self._log_after = 0
        self._log: list[rest.LogLine] = []
        self._log_trial: int | None = None

    def changes(self) -> dict[str, Any]:
        """Return the parts that have changed since the last call, by name, as JSON values."""
        # JSON has no not-a-number and no infinities: they are texts, as over REST.
        texts = {name: json.dumps(words(part)) for name, part in self._parts().items()}
        changed = {name: json.loads(text) for name, text in texts.items() if self._known.get(name) != text}
        self.size = sum(len(texts[name]) for name in changed)
        self._known = texts
        return changed

    def _parts(self) -> dict[str, Any]:
        experiment = self._source.experiment(self._experiment_id)
        trials = [self._source.trial(self._trial_id)] if self._trial_id else self._source.trials(self._experiment_id)
        checkpoints = self._source.checkpoints(
            experiment_id=self._experiment_id, trial_id=self._trial_id if self._trial_id else None
        )
        return {
            "experiment": experiment.model_dump(mode="json"),
            "trials": _json(trials),
            "checkpoints": _json(checkpoints),
            "curves": _json(self._source.curves(self._experiment_id, self._trial_id or None)),
            "logs": _json(self._logs(trials)),
            "system": self._system(trials),
            "outputs": self._outputs(trials, experiment),
        }

    def _outputs(self, trials: Sequence[rest.Trial], experiment: rest.ExperimentDetail) -> dict[str, Any] | None:
        """Return what the best trial, or that which was chosen, has logged and written."""
        best = outputs_trial(trials, smaller_is_better=experiment.smaller_is_better)
        trial_id = self.outputs_of or (best.id if best is not None else 0)
        if not trial_id:
            return None
        return {
            "trialId": trial_id,
            "chosen": self.outputs_of > 0,
            "media": _json(self._source.media(trial_id)[-MAX_MEDIA:]),
            "files": _json(self._source.artifacts(trial_id)),
        }

    def _system(self, trials: Sequence[rest.Trial]) -> dict[str, Any] | None:
        """Return what the trial whose log is shown uses of its machine; None where nothing is known of that."""
        trial = logged_trial(trials)
        samples = [] if trial is None else self._source.system(trial.id, SYSTEM_POINTS)
        return {"trialId": trial.id, "samples": _json(samples)} if trial is not None and samples else None

    def _logs(self, trials: Sequence[rest.Trial]) -> list[rest.LogLine]:
        trial = logged_trial(trials)
        if trial is None:
            return []
        if trial.id != self._log_trial:
            self._log_trial, self._log_after, self._log = trial.id, 0, []
        new = self._source.logs(trial.id, self._log_after)
        self._log = [*self._log, *new][-LOG_LINES:]
        self._log_after = self._log[-1].id if self._log else 0
        return self._log


def logged_trial(trials: Sequence[rest.Trial]) -> rest.Trial | None:
    """Return the trial whose log is worth showing: the newest that runs, else the newest that failed, else any."""
    for state in (TrialState.RUNNING, TrialState.ERROR):
        for trial in reversed(trials):
            if trial.state is state:
                return trial
    return trials[-1] if trials else None


def outputs_trial(trials: Sequence[rest.Trial], *, smaller_is_better: bool) -> rest.Trial | None:
    """Return the trial whose outputs are shown: the best one, or while none has been validated that which runs."""
    validated = [trial for trial in trials if trial.best_validation is not None]
    return best_trial(validated, smaller_is_better=smaller_is_better) or logged_trial(trials)


def _json(models: Sequence[Any]) -> list[Any]:
    return [model.model_dump(mode="json") for model in models]
