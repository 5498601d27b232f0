"""Experiments: created, driven by their searchers, and brought to an end."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Sequence, Set
from contextlib import contextmanager

from sqlalchemy.exc import OperationalError

from det_native.errors import ArgumentError, InputDiffersError, RequestError
from det_native.master.flow import after
from det_native.master.flow.collection import retire
from det_native.master.flow.context import OPEN_STATES, Context, tell_experiment, tell_trial
from det_native.master.flow.jobs import stage_of, target_batches
from det_native.master.flow.searchers import BrokenSearchError, Searchers
from det_native.master.flow.warm_start import weights_for
from det_native.master.store import experiments, logs, metrics, trials, unfinished
from det_native.master.store import runs as run_store
from det_native.master.store.database import Transaction
from det_native.schema import rest
from det_native.schema.config import ExperimentConfig
from det_native.schema.lengths import Length
from det_native.schema.metric_names import metric_names
from det_native.schema.refused import is_refused
from det_native.schema.stage_words import begins_with, stopped_early, trained_on, units_done
from det_native.schema.states import ExperimentState, TrialState
from det_native.schema.time_left import Course, TimeLeft
from det_native.schema.trial_names import trial_name
from det_native.search import (
    Close,
    CreateTrial,
    Event,
    Shutdown,
    Started,
    Stop,
    TrainTo,
    TrialCompleted,
    TrialFailed,
    TrialRefused,
    TrialValidated,
)
from det_native.search.make import planned_trials
from det_native.storage.backups import DamagedDatabaseError

logger = logging.getLogger(__name__)

PROGRESS_SECONDS = 0.25
PROGRESS_STEP = 0.002

_NOT_PAUSED = (
    "Experiment {0} trains in a kernel or script of yours, which cannot be paused: det.experiment({0}).stop() ends it "
    "with a checkpoint, from which det.experiment({0}).continue_() goes on."
)
_NO_SLOTS = "Experiment {0} trains in a kernel or script of yours and holds no slot: nothing of that can change."


class Experiments:
    """All experiments that have not ended, and their searchers. Used by the decision thread only."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._searchers = Searchers(context.database)
        self._time_left: dict[int, TimeLeft] = {}
        self._touched: set[int] = set()
        self._progress_at = 0.0
        self._watches: dict[int, bool] = {}
        self._broken: set[int] = set()  # experiments whose searcher has failed
        self._validated: dict[int, int] = {}  # how far trials were whose validations a searcher knows

    def take_up_all(self, live: Set[int]) -> list[int]:
        """Continue after a restart of the master, `live` being the trials with a worker; return what is over."""
        with self._context.database.read() as connection:
            going_on = unfinished.ids(connection)
        return [experiment_id for experiment_id in going_on if self._taken_up(experiment_id, live)]

    def _taken_up(self, experiment_id: int, live: Set[int]) -> bool:
        """Continue an experiment; one that cannot be must not keep the others from it."""
        try:
            return self.take_up(experiment_id, live)
        except DamagedDatabaseError as error:
            logger.error("Experiment %d is not continued: %s", experiment_id, error)
        except OperationalError:  # all are tried again
            raise
        except Exception:  # such as a package of its searcher's that is not installed any more
            logger.exception("Experiment %d is not continued.", experiment_id)
        return False

    def take_up(self, experiment_id: int, live: Set[int] = frozenset()) -> bool:
        """Begin an experiment, or continue it; whether it is over."""
        with self._deciding(experiment_id) as transaction:
            experiment = experiments.get(transaction.connection, experiment_id)
            if experiment.state in OPEN_STATES and not self._fail_by_proof(transaction, experiment, live):
                self._tell(transaction, experiment, Started())
                for request, trial in trials.by_request(transaction.connection, experiment_id).items():
                    if trial.state.terminal:
                        self._tell_ending(transaction, experiment, request, trial)
                    else:
                        self._tell_validations(transaction, experiment, trial)
            elif not experiment.state.terminal:
                self._cancel_waiting(transaction, experiment_id, live)
            return self._end_if_over(transaction, experiment_id)

    def fail_by_proof(self, experiment_id: int, trial_id: int, live: Set[int]) -> bool:
        """End an experiment if this trial was given other inputs than the notebook; whether it ends by that.

        Only one trial can tell, and the others run the same program. Those without a live run are canceled at once.
        """
        with self._deciding(experiment_id) as transaction:
            experiment = experiments.get(transaction.connection, experiment_id)
            return experiment.state in OPEN_STATES and self._fail_by_proof(transaction, experiment, live - {trial_id})

    def cannot_begin(self, experiment_id: int, reason: str) -> bool:
        """End an experiment that was to begin after another one, which has not completed; whether it is over."""
        with self._deciding(experiment_id) as transaction:
            experiment = experiments.get(transaction.connection, experiment_id)
            if experiment.state not in OPEN_STATES:
                return False
            text = f"It was to begin after another one, and cannot: {reason}."
            error = rest.UserErrorInfo(type=after.ERROR, message=text, traceback="")
            experiments.set_state(transaction, experiment_id, ExperimentState.STOPPING_ERROR, error)
            for trial in trials.of_experiment(transaction.connection, experiment_id):
                if not trial.state.terminal:
                    logs.add(transaction, trial.id, "", "system", [text])
            self._cancel_waiting(transaction, experiment_id, frozenset())
            return self._end_if_over(transaction, experiment_id)

    def is_failing(self, experiment_id: int) -> bool:
        """Whether an experiment ends in an error, and waits for the workers that are left."""
        with self._context.database.read() as connection:
            return experiments.get(connection, experiment_id).state is ExperimentState.STOPPING_ERROR

    def trial_over(self, experiment_id: int, trial_id: int) -> bool:
        """Tell the searcher that a trial has reached its end; whether the experiment is over with it."""
        with self._deciding(experiment_id) as transaction:
            experiment = experiments.get(transaction.connection, experiment_id)
            trial = trials.get(transaction.connection, trial_id)
            if experiment.state in OPEN_STATES:
                self._tell_ending(transaction, experiment, trials.request_of(transaction.connection, trial_id), trial)
            self._touched.add(experiment_id)
            self._validated.pop(trial_id, None)
            return self._end_if_over(transaction, experiment_id)

    def watches(self, experiment_id: int) -> bool:
        """Return whether an experiment's searcher is to be told of validations of trials that train on."""
        found = self._watches.get(experiment_id)
        if found is None:
            with self._context.database.read() as connection:
                experiment = experiments.get(connection, experiment_id)
            if experiment.state not in OPEN_STATES:
                return False
            found = self._watches[experiment_id] = self._searchers.of(experiment).watches_validations
        return found

    def validated(self, experiment_id: int, trial_id: int) -> None:
        """Tell the searcher of the validations of a trial that trains on; it may have it end early."""
        with self._deciding(experiment_id) as transaction:
            experiment = experiments.get(transaction.connection, experiment_id)
            trial = trials.get(transaction.connection, trial_id)
            if experiment.state in OPEN_STATES and not trial.state.terminal:
                self._tell_validations(transaction, experiment, trial)

    def has_stopped(self, experiment_id: int, trial_id: int) -> bool:
        """Return whether its search has had a trial end early."""
        if not self.watches(experiment_id):
            return False
        with self._context.database.read() as connection:
            request = trials.request_of(connection, trial_id)
            experiment = experiments.get(connection, experiment_id)
        return self._searchers.of(experiment).has_stopped(request)

    def kill(self, experiment_id: int, owner: str, live: Set[int]) -> tuple[rest.Experiment, bool]:
        """Cancel an experiment and its trials that have no live run; return it, and whether it is over with that."""
        with self._deciding(experiment_id) as transaction:
            return self._cancel(transaction, experiment_id, owner, live)

    def stop(self, experiment_id: int, owner: str, live: Set[int]) -> tuple[rest.Experiment, bool]:
        """Have an experiment's workers checkpoint and end, for good; return it, and whether it is over with that."""
        with self._deciding(experiment_id) as transaction:
            run_store.ask_to_stop(transaction, experiment_id)
            return self._cancel(transaction, experiment_id, owner, live)

    def pause(self, experiment_id: int, owner: str) -> rest.Experiment:
        """Have an experiment's workers checkpoint and end, and nothing start until it is resumed; return it.

        Raises
        ------
        NotFoundError
            If there is no such experiment of this owner.
        RequestError
            If it has ended, or is about to.
        """
        with self._context.database.write() as transaction:
            experiment = experiments.get(transaction.connection, experiment_id, owner)
            if experiment.state is ExperimentState.PAUSED:
                return experiment
            _refuse_ended(experiment, "paused")
            if experiment.in_kernel:
                raise RequestError(409, _NOT_PAUSED.format(experiment_id))
            experiments.set_state(transaction, experiment_id, ExperimentState.PAUSED)
            run_store.ask_to_stop(transaction, experiment_id)
            paused = tell_experiment(transaction, experiment_id)
        self._time_left.setdefault(experiment_id, TimeLeft()).rest()
        logger.info("experiment %d paused", experiment_id)
        return paused

    def resume(self, experiment_id: int, owner: str) -> rest.Experiment:
        """Go on with a paused experiment; return it. See :meth:`pause` for what can be wrong."""
        with self._context.database.write() as transaction:
            experiment = experiments.get(transaction.connection, experiment_id, owner)
            if experiment.state is ExperimentState.ACTIVE:
                return experiment
            _refuse_ended(experiment, "resumed")
            experiments.set_state(transaction, experiment_id, ExperimentState.ACTIVE)
            active = tell_experiment(transaction, experiment_id)
        logger.info("experiment %d resumed", experiment_id)
        return active

    def change(self, experiment_id: int, owner: str, changes: rest.ResourcesChange) -> rest.Experiment:
        """Change the priority, weight or limit of an experiment that goes on; return it.

        Raises
        ------
        NotFoundError
            If there is no such experiment of this owner.
        ArgumentError
            If no trial of it could run with that.
        RequestError
            If it has ended, or is about to.
        """
        with self._context.database.write() as transaction:
            experiment = experiments.get(transaction.connection, experiment_id, owner)
            _refuse_ended(experiment, "changed")
            if experiment.in_kernel:
                raise RequestError(409, _NO_SLOTS.format(experiment_id))
            given = changes.model_dump(include=changes.model_fields_set)
            wanted = ExperimentConfig.model_validate(experiment.config).resources.slots_per_trial
            if given.get("max_slots") is not None and given["max_slots"] < wanted:
                raise ArgumentError(
                    f"max_slots: {given['max_slots']} is less than the {wanted} slots of each trial, so that none "
                    "could run. Pause the experiment to give its slots to others."
                )
            experiments.set_resources(transaction, experiment_id, given)
            changed = tell_experiment(transaction, experiment_id)
        logger.info("experiment %d changed: %s", experiment_id, given)
        return changed

    def touch(self, experiment_id: int) -> None:
        """Something was reported: the experiment's progress is to be worked out again."""
        self._touched.add(experiment_id)

    def refresh_progress(self) -> None:
        """Store and tell the progress of experiments that have moved, a few times a second at most."""
        if not self._touched or time.monotonic() < self._progress_at:
            return
        self._progress_at = time.monotonic() + PROGRESS_SECONDS
        touched, self._touched = self._touched, set()
        for experiment_id in touched:
            self._refresh(experiment_id)

    def _refresh(self, experiment_id: int) -> None:
        with self._context.database.read() as connection:
            experiment = experiments.get(connection, experiment_id)
            if experiment.state.terminal:
                return
            known = trials.by_request(connection, experiment_id)
        done = {
            request: trial.batches / trial.target_batches
            for request, trial in known.items()
            if trial.target_batches and not trial.state.terminal
        }
        searcher = self._searchers.of(experiment)
        progress = searcher.progress(done)
        seconds_left = None
        if experiment.state is ExperimentState.ACTIVE:
            running = sum(trial.state is TrialState.RUNNING for trial in known.values())
            planned = planned_trials(ExperimentConfig.model_validate(experiment.config)) or len(known)
            course = Course(planned / max(running, 1), running, searcher.last_stage)
            time_left = self._time_left.setdefault(experiment_id, TimeLeft())
            seconds_left = time_left.observe(time.monotonic(), progress, course)
        if abs(progress - experiment.progress) < PROGRESS_STEP:
            return
        with self._context.database.write() as transaction:
            experiments.set_progress(transaction, experiment_id, progress, seconds_left)
            tell_experiment(transaction, experiment_id)

    @contextmanager
    def _deciding(self, experiment_id: int) -> Iterator[Transaction]:
        """Give a transaction; if it fails, the searcher goes back to what is stored."""
        try:
            with self._context.database.write() as transaction:
                yield transaction
        except BaseException:
            self._searchers.forget(experiment_id)
            self._broken.discard(experiment_id)
            self._validated.clear()
            raise

    def _cancel(
        self, transaction: Transaction, experiment_id: int, owner: str, live: Set[int]
    ) -> tuple[rest.Experiment, bool]:
        experiment = experiments.get(transaction.connection, experiment_id, owner)
        if experiment.state.terminal:
            return experiment, False
        experiments.set_state(transaction, experiment_id, ExperimentState.STOPPING_CANCELED)
        self._cancel_waiting(transaction, experiment_id, live)
        over = self._end_if_over(transaction, experiment_id)
        if not over:
            tell_experiment(transaction, experiment_id)
        return experiments.get(transaction.connection, experiment_id), over

    def _fail_by_proof(self, transaction: Transaction, experiment: rest.Experiment, live: Set[int]) -> bool:
        found = trials.of_experiment(transaction.connection, experiment.id)
        differing = next((trial for trial in found if _differs(trial)), None)
        if differing is None:
            return False
        experiments.set_state(transaction, experiment.id, ExperimentState.STOPPING_ERROR)
        name = trial_name(experiment.id, differing.number)
        text = f"The experiment ends: trial {name} was given something else than the notebook, with this program."
        for trial in found:
            if trial is not differing:
                logs.add(transaction, trial.id, "", "system", [text])
        self._cancel_waiting(transaction, experiment.id, live)
        tell_experiment(transaction, experiment.id)
        return True

    def _cancel_waiting(self, transaction: Transaction, experiment_id: int, live: Set[int]) -> None:
        for trial in trials.of_experiment(transaction.connection, experiment_id):
            if not trial.state.terminal and trial.id not in live:
                trials.set_state(transaction, trial.id, TrialState.CANCELED)
                tell_trial(transaction, trial.id)

    def _tell_ending(
        self, transaction: Transaction, experiment: rest.Experiment, request: int, trial: rest.Trial
    ) -> None:
        """Tell the searcher of a trial that is over; an experiment whose kernel has ended it ends with it."""
        if trial.state is not TrialState.CANCELED or is_refused(trial):
            self._tell(transaction, experiment, self._ending(transaction, experiment, request, trial))
        elif experiment.in_kernel:
            experiments.set_state(transaction, experiment.id, ExperimentState.STOPPING_CANCELED, trial.error)

    def _tell(self, transaction: Transaction, experiment: rest.Experiment, event: Event) -> None:
        """Tell the searcher of an event, and do what it wants; if it cannot say, the experiment ends in an error."""
        if experiment.id in self._broken:
            return
        try:
            actions = self._searchers.tell(transaction, experiment, event)
        except BrokenSearchError as error:
            logger.exception("The search of experiment %d cannot go on.", experiment.id)
            self._broken.add(experiment.id)
            told = rest.UserErrorInfo(
                type="SearchError",
                message=f"The searcher {experiment.config['searcher']['name']} cannot go on: {error}. The trials until "
                "then stay; the log of the master has more.",
                traceback="",
            )
            experiments.set_state(transaction, experiment.id, ExperimentState.STOPPING_ERROR, told)
            return
        for action in actions:
            match action:
                case CreateTrial():
                    self._create_trial(transaction, experiment, action)
                case TrainTo(request, units):
                    self._extend_trial(transaction, experiment, request, units)
                case Close(request):
                    self._close_trial(transaction, experiment, request)
                case Stop(request):
                    self._stop_trial(transaction, experiment, request)
                case Shutdown(failed):
                    state = ExperimentState.STOPPING_ERROR if failed else ExperimentState.STOPPING_COMPLETED
                    experiments.set_state(transaction, experiment.id, state)

    def _create_trial(self, transaction: Transaction, experiment: rest.Experiment, action: CreateTrial) -> None:
        config = ExperimentConfig.model_validate(experiment.config)
        weights = weights_for(transaction.connection, experiment, config, action.parent)
        trial_id = trials.create(
            transaction,
            experiment.id,
            request=action.request,
            hparams=action.hparams,
            seed=action.seed,
            units=action.units,
            target_batches=target_batches(
                config, action.hparams, experiment.framework, stage=stage_of(config, action.units)
            ),
            warm_start=weights.uuid if weights is not None else None,
        )
        if weights is not None:
            text = begins_with(trial_name(weights.experiment_id, weights.shown_trial), weights.manifest)
            logs.add(transaction, trial_id, "", "system", [text])
        tell_trial(transaction, trial_id)

    def _extend_trial(self, transaction: Transaction, experiment: rest.Experiment, request: int, units: int) -> None:
        config = ExperimentConfig.model_validate(experiment.config)
        trial = trials.with_request(transaction.connection, experiment.id, request)
        target = target_batches(config, trial.hparams, experiment.framework, stage=stage_of(config, units))
        trials.extend(transaction, trial.id, units=units, target_batches=target)
        text = trained_on(Length(unit=config.searcher.max_length.unit, units=units))
        logs.add(transaction, trial.id, "", "system", [text])
        tell_trial(transaction, trial.id)

    def _tell_validations(self, transaction: Transaction, experiment: rest.Experiment, trial: rest.Trial) -> None:
        """Tell a searcher that watches them of the validations of a trial before its end; it knows those of before."""
        searcher, connection = self._searchers.of(experiment), transaction.connection
        request = trials.request_of(connection, trial.id)
        if not searcher.watches_validations or searcher.has_stopped(request):
            return
        length = ExperimentConfig.model_validate(experiment.config).searcher.max_length
        found = metrics.validations(connection, trial.id, experiment.metric)
        for batch, value in found:
            done = units_done(length, batch, trial.target_batches)
            if self._validated.get(trial.id, 0) < done < length.units and not searcher.has_stopped(request):
                self._tell(transaction, experiment, TrialValidated(request, done, value))
                self._validated[trial.id] = done

    def _close_trial(self, transaction: Transaction, experiment: rest.Experiment, request: int) -> None:
        """Say of a trial that has completed a stage, and is not trained on, that it has not had the whole length."""
        trial = trials.with_request(transaction.connection, experiment.id, request)
        length = ExperimentConfig.model_validate(experiment.config).searcher.max_length
        if trial.stages and trial.stages[-1] < length.units and trial.batches >= trial.target_batches:
            done = Length(unit=length.unit, units=trial.stages[-1])
            trials.set_notice(transaction, trial.id, stopped_early(done))
            tell_trial(transaction, trial.id)

    def _stop_trial(self, transaction: Transaction, experiment: rest.Experiment, request: int) -> None:
        """Have a trial end early: its run, if it has one, is asked to, and is then taken as completed."""
        trial = trials.with_request(transaction.connection, experiment.id, request)
        length = ExperimentConfig.model_validate(experiment.config).searcher.max_length
        done = Length(unit=length.unit, units=units_done(length, trial.batches, trial.target_batches))
        text = stopped_early(done)
        trials.set_notice(transaction, trial.id, text)
        logs.add(transaction, trial.id, trial.run_id or "", "system", [f"This trial is {text}."])
        if trial.state is TrialState.RUNNING and trial.run_id is not None:
            run_store.ask_run_to_stop(transaction, trial.run_id)
        else:
            trials.set_state(transaction, trial.id, TrialState.COMPLETED)
            ended = trials.get(transaction.connection, trial.id)
            self._tell(transaction, experiment, self._ending(transaction, experiment, request, ended))
        tell_trial(transaction, trial.id)

    def _ending(
        self, transaction: Transaction, experiment: rest.Experiment, request: int, trial: rest.Trial
    ) -> TrialCompleted | TrialFailed | TrialRefused:
        if is_refused(trial):
            return TrialRefused(request)
        if trial.state is TrialState.ERROR:
            return TrialFailed(request)
        connection = transaction.connection
        names = metric_names(experiment.config) or [experiment.metric]
        values = tuple(_last(metrics.validations(connection, trial.id, name)) for name in names)
        return TrialCompleted(
            request,
            values[0],
            units=trials.units_of(connection, trial.id),
            over=0 < trial.batches < trial.target_batches,
            metrics=values,
        )

    def _end_if_over(self, transaction: Transaction, experiment_id: int) -> bool:
        """Bring an experiment that is stopping to its end, once none of its trials is left."""
        connection = transaction.connection
        experiment = experiments.get(connection, experiment_id)
        state = experiment.state
        ends = {
            ExperimentState.STOPPING_CANCELED: ExperimentState.CANCELED,
            ExperimentState.STOPPING_COMPLETED: ExperimentState.COMPLETED,
            ExperimentState.STOPPING_ERROR: ExperimentState.ERROR,
        }
        if state not in ends:
            return False
        found = trials.of_experiment(connection, experiment_id)
        if not all(trial.state.terminal for trial in found):
            return False
        # What the program was given is the cause of all else.
        ordered = sorted(found, key=lambda trial: (_differs(trial), not is_refused(trial)))
        errors = [trial.error for trial in ordered if trial.state is TrialState.ERROR or is_refused(trial)]
        last = errors[-1] if ends[state] is ExperimentState.ERROR and errors else None
        error = experiment.error or last
        experiments.set_state(transaction, experiment_id, ends[state], error)
        if ends[state] is not ExperimentState.COMPLETED:
            experiments.set_progress(
                transaction, experiment_id, _share_done(experiments.get(connection, experiment_id), found)
            )
        retire(transaction, experiments.get(connection, experiment_id))
        tell_experiment(transaction, experiment_id)
        logger.info("experiment %d ended: %s", experiment_id, ends[state])
        self._searchers.forget(experiment_id)
        self._broken.discard(experiment_id)
        self._time_left.pop(experiment_id, None)
        self._watches.pop(experiment_id, None)
        return True


def _differs(trial: rest.Trial) -> bool:
    """Whether a trial has ended since its inputs were not the notebook's."""
    error = trial.error
    return trial.state is TrialState.ERROR and error is not None and error.type == InputDiffersError.__name__


def _share_done(experiment: rest.Experiment, found: Sequence[rest.Trial]) -> float:
    """Return how far an experiment came that did not complete: by its trials' batches, of all that it was to have.

    Its searcher would count trials that ended as done.
    """
    planned = planned_trials(ExperimentConfig.model_validate(experiment.config)) or 0
    fractions = [
        1.0 if trial.state is TrialState.COMPLETED else min(trial.batches / trial.target_batches, 1.0)
        for trial in found
        if trial.target_batches or trial.state is TrialState.COMPLETED
    ]
    return sum(fractions) / max(planned, len(found), 1)


def _last(found: Sequence[tuple[int, float]]) -> float | None:
    return found[-1][1] if found else None


def _refuse_ended(experiment: rest.Experiment, asked: str) -> None:
    if experiment.state not in OPEN_STATES:
        what = "has ended" if experiment.state.terminal else "is ending"
        raise RequestError(409, f"Experiment {experiment.id} {what} ({experiment.state}); it cannot be {asked}.")
