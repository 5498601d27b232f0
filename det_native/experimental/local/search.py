"""The trials of a search in this process, one at a time, as the same searcher decides that a master has."""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from det_native.client.handles import Experiment
from det_native.client.waiting import error_text
from det_native.errors import InvalidHP
from det_native.experimental.local.experiment import LocalExperiment
from det_native.experimental.local.record import Record
from det_native.experimental.local.samples import Sample, Stage
from det_native.schema.config import ExperimentConfig
from det_native.schema.lengths import Length
from det_native.schema.metric_names import metric_names
from det_native.schema.rest import Trial
from det_native.schema.stage_words import stopped_early, units_done
from det_native.schema.states import TrialState
from det_native.search import (
    Action,
    Close,
    CreateTrial,
    Event,
    Searcher,
    Shutdown,
    Started,
    Stop,
    TrainTo,
    TrialCompleted,
    TrialFailed,
    TrialRefused,
    TrialValidated,
    make_searcher,
)
from det_native.search.make import check_search, planned_trials


@dataclass
class _Request:
    """What the searcher has asked for one trial, and whether it has begun."""

    action: CreateTrial
    units: int | None
    begun: bool = False


class LocalSearch:
    """Runs what a searcher asks for, one stage of one trial at a time; of those that wait, the oldest trial first.

    So a master with one slot would do it. Trials have the numbers of their requests, counted from 1.

    Parameters
    ----------
    config : ExperimentConfig
        With its seed fixed.

    Raises
    ------
    MissingDependencyError
        If the searcher needs a package that is not installed.
    """

    def __init__(self, config: ExperimentConfig) -> None:
        self._config = config
        check_search(config)
        self._searcher: Searcher = make_searcher(config)
        self._smaller_is_better = config.smaller_is_better
        self._requests: list[_Request] = []
        self._waiting: list[int] = []
        self._failed = False
        self._shown: set[str] = set()

    def run(self, experiment: LocalExperiment, steps: int | None = None) -> Experiment:
        """Run the search to its end, or to Ctrl-C; return the handle.

        A trial that fails, or whose code says that its hyperparameters are invalid, is told of, and the search goes on
        without it, as on the cluster. Where all have failed, the last error is raised.

        Parameters
        ----------
        experiment : LocalExperiment
        steps : int, optional
            Batches of an epoch, where the data tell them.
        """
        with experiment.running(planned_trials(self._config), self._share_done):
            self._tell(Started(), experiment)
            while self._waiting:
                request = heapq.heappop(self._waiting)
                try:
                    watch = partial(self._validated, request, experiment)
                    experiment.run_stage(
                        self._stage(request), steps, watch=watch if self._searcher.watches_validations else None
                    )
                except Exception as error:
                    refused = isinstance(error, InvalidHP)
                    self._tell(TrialRefused(request) if refused else TrialFailed(request), experiment)
                    if self._failed:
                        raise
                    if refused:
                        print(f"Trial {request + 1} has invalid hyperparameters, and the search goes on: {error}")
                    else:
                        print(f"{self._failure(experiment.record.trial(request + 1))}\nThe search goes on.")
                    continue
                if experiment.interrupted:
                    break
                self._tell(self._completed(request, experiment), experiment)
        return experiment.handle

    def _failure(self, trial: Trial) -> str:
        """Return what to show of a failed trial, with the traceback where no earlier one had the same."""
        assert trial.error is not None
        known = trial.error.traceback in self._shown
        self._shown.add(trial.error.traceback)
        return error_text(trial.error, trial.id, known=known)

    def _validated(self, request: int, experiment: LocalExperiment, batch: int, metrics: Mapping[str, float]) -> bool:
        """Tell the searcher of a validation of a trial that trains; return whether the trial is to end early."""
        length = self._config.searcher.max_length
        done = units_done(length, batch, experiment.record.target_of(request + 1))
        if not 0 < done < length.units:
            return False
        told = TrialValidated(request, done, metrics.get(experiment.record.metric))
        if not any(isinstance(action, Stop) for action in self._searcher.handle(told)):
            return False
        experiment.record.note(request + 1, stopped_early(Length(unit=length.unit, units=done)))
        return True

    def _tell(self, event: Event, experiment: LocalExperiment) -> None:
        record = experiment.record
        if record.smaller_is_better != self._smaller_is_better:  # told by the first batch of a training
            self._smaller_is_better = record.smaller_is_better
            self._searcher = make_searcher(record.config, self._searcher.snapshot())
        for action in self._searcher.handle(event):
            self._take(action)
            if isinstance(action, Close):
                self._close(action.request, record)

    def _close(self, request: int, record: Record) -> None:
        """Say of a trial that has completed a stage, and is not trained on, that it has not had the whole length."""
        units, length = self._requests[request].units, self._config.searcher.max_length
        if units is not None and units < length.units:
            record.stop_early(request + 1, stopped_early(Length(unit=length.unit, units=units)))

    def _take(self, action: Action) -> None:
        match action:
            case CreateTrial(request, _, _, units):
                self._requests.append(_Request(action, units))
                heapq.heappush(self._waiting, request)
            case TrainTo(request, units):
                self._requests[request].units = units
                heapq.heappush(self._waiting, request)
            case Shutdown(failed):
                self._failed = failed

    def _stage(self, number: int) -> Stage:
        """Return what a request asks of its trial now."""
        request = self._requests[number]
        action, goes_on = request.action, request.begun
        request.begun = True
        unit = self._config.searcher.max_length.unit
        return Stage(
            number + 1,
            Sample(action.hparams, action.seed),
            None if request.units is None else Length(unit=unit, units=request.units),
            goes_on,
            None if action.parent is None else action.parent + 1,
        )

    def _completed(self, number: int, experiment: LocalExperiment) -> Event:
        """Return what the trial of a request has come to."""
        trial = experiment.record.trial(number + 1)
        if trial.state is TrialState.ERROR:
            return TrialFailed(number)
        names = metric_names(self._config.model_dump(mode="json")) or [experiment.record.metric]
        values = tuple(experiment.last_value(trial.id, name) for name in names)
        return TrialCompleted(
            number,
            values[0],
            units=self._requests[number].units,
            over=0 < trial.batches < trial.target_batches,
            metrics=values,
        )

    def _share_done(self, by_trial: Mapping[int, float]) -> float:
        return self._searcher.progress({trial - 1: share for trial, share in by_trial.items()})
