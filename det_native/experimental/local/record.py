"""What is kept of a local experiment and its trials while they run, in the form in which a master keeps it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from det_native.experimental.local.retention import delete_superfluous
from det_native.experimental.local.spool import Spool
from det_native.local.runner import this_process
from det_native.local.store import LocalStore, checkpoint_row, now, trial_row
from det_native.schema import rest
from det_native.schema.config import ExperimentConfig
from det_native.schema.hidden import hidden
from det_native.schema.manifests import Framework
from det_native.schema.refused import is_refused, refused_because
from det_native.schema.stage_words import STOPPED_EARLY
from det_native.schema.states import ExperimentState, TrialState
from det_native.schema.time_left import TimeLeft

if TYPE_CHECKING:
    from det_harness.local.report import LocalReporter

    from det_native.experimental.local.samples import Stage


class Record:
    """The record of one experiment: its row and the rows of its trials, written to the store as they change.

    While a trial runs, a thread writes what it reports.

    Parameters
    ----------
    store : LocalStore
    config : ExperimentConfig
    framework : str
    bundle_id : str or None
    whole_epochs : bool
        Whether epochs end with a smaller batch, which a length in records does not know.
    """

    def __init__(
        self,
        store: LocalStore,
        config: ExperimentConfig,
        framework: Framework,
        bundle_id: str | None,
        *,
        whole_epochs: bool,
    ) -> None:
        self._store = store
        self._config = config
        self._whole_epochs = whole_epochs
        self._planned: int | None = 1
        self._share_done: Callable[[Mapping[int, float]], float] | None = None
        self._at = -1
        self._time_left = TimeLeft()
        self._trials: list[rest.Trial] = []
        self._spool: Spool | None = None
        self._reporter: LocalReporter | None = None
        self._notices: dict[int, str] = {}
        self._detail = rest.ExperimentDetail(
            id=store.number,
            name=config.name or config.description or f"local {framework} experiment",
            state=ExperimentState.ACTIVE,
            config=hidden(config.model_dump(mode="json")),
            bundle_id=bundle_id,
            framework=framework,
            metric=config.searcher.metric or "",
            smaller_is_better=config.searcher.smaller_is_better,
            progress=0.0,
            trials=0,
            best_validation=None,
            error=None,
            created=now(),
            started=now(),
            ended=None,
            description=config.description or "",
            labels=list(dict.fromkeys(config.labels)),
            project=(config.project or "").strip("/"),
        )

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C ended the trial that ran last."""
        last = self._trials[self._at] if self._trials else None
        return last is not None and last.state is TrialState.CANCELED and not is_refused(last)

    @property
    def planned(self) -> int | None:
        """How many trials there will be; None where what they come to decides it."""
        return self._planned

    @property
    def smaller_is_better(self) -> bool:
        """Which values of the metric are better, which the first batch of a training may have told."""
        return self._detail.smaller_is_better

    @property
    def metric(self) -> str:
        """By what trials are compared."""
        return self._detail.metric

    @property
    def config(self) -> ExperimentConfig:
        """The configuration, with the metric."""
        return self._config

    def trial(self, number: int) -> rest.Trial:
        """Return a trial as it is now."""
        return self._trials[number - 1]

    @property
    def trained(self) -> bool:
        """Whether there is a batch done."""
        return any(trial.batches for trial in self._trials)

    def target_of(self, number: int) -> int:
        """Return how many batches a trial has, as far as that is known."""
        trial = self._trials[number - 1]
        told = self._reporter.length if self._reporter is not None else None
        return trial.target_batches if told is None else told

    def note(self, number: int, text: str) -> None:
        """Keep what is to be known of a trial beside its state; it is written with what the trial reports next."""
        self._notices[number] = text

    def stop_early(self, number: int, text: str) -> None:
        """Write that a search does not train a completed trial on; one that has ended by itself is left alone."""
        trial = self._trials[number - 1]
        if trial.state is TrialState.COMPLETED and trial.batches >= trial.target_batches:
            self._trials[number - 1] = trial.model_copy(update={"notice": text, "stopped_early": True})
            self._store.write_trial(self._trials[number - 1])

    def begin(self, planned: int | None, share_done: Callable[[Mapping[int, float]], float] | None = None) -> None:
        """Begin the experiment.

        Parameters
        ----------
        planned : int or None
        share_done : callable, optional
            How much of a search is done, of what share of its training the trial that runs has done, by its number.
        """
        self._planned, self._share_done = planned, share_done
        self._store.write_runner(this_process())
        self._store.write_experiment(self._detail)

    def begin_trial(self, stage: Stage, target: int, warm_start: str | None = None) -> rest.Trial:
        """Begin the next trial, or go on with one, to so many batches; `warm_start` is where its weights are from."""
        lengths = [] if stage.length is None else [stage.length.units]
        if stage.goes_on:
            self._at = stage.trial - 1
            known = self._trials[self._at]
            changes = {"state": TrialState.RUNNING, "ended": None, "stages": [*known.stages, *lengths]}
            trial = known.model_copy(update=changes | {"target_batches": target})
            self._trials[self._at] = trial
        else:
            self._at = len(self._trials)
            trial = trial_row(self._store, self._at + 1, stage.sample.hparams, stage.sample.seed, target)
            trial = trial.model_copy(update={"stages": lengths, "warm_start": warm_start})
            self._trials.append(trial)
        self._store.write_trial(trial)
        self._update()
        return trial

    def follow(self, reporter: LocalReporter) -> None:
        """Write from now on what the trial that was begun last reports, until it ends."""
        self._reporter = reporter
        self._spool = Spool(self._store, self._trials[self._at].id, reporter, self._tell)

    def _tell(self, reporter: LocalReporter, batches: int) -> None:
        """Write how far the trial is, and the experiment with it."""
        self._compare_by(reporter)
        changes = {"batches": batches, "warning": reporter.told} | self._best(reporter)
        trial = self._trials[self._at].model_copy(update=changes | self._told(reporter))
        self._trials[self._at] = trial
        self._store.write_trial(trial)
        self._write_checkpoints(trial.id, reporter)
        part = min(batches / trial.target_batches, 1.0) if trial.target_batches else 0.0
        progress = self._progress(part)
        self._update(progress=progress, seconds_left=self._time_left.observe(time.monotonic(), progress))

    def _best(self, reporter: LocalReporter) -> dict[str, Any]:
        """Return the best value of the trial that runs, and since when it has it."""
        value, trial = reporter.best_metric(), self._trials[self._at]
        unchanged = value is None or value == trial.best_validation
        return {"best_validation": value, "best_at": trial.best_at if unchanged else now()}

    def _compare_by(self, reporter: LocalReporter) -> None:
        """Keep by which metric trials are compared, and whether it is of validations, which the training may tell."""
        if not reporter.validates:
            self._detail = self._detail.model_copy(update={"validates": False})
        if reporter.metric and reporter.metric != self._config.searcher.metric:
            said = {"metric": reporter.metric, "smaller_is_better": reporter.smaller_is_better}
            searcher = self._config.searcher.model_copy(update=said)
            self._config = self._config.model_copy(update={"searcher": searcher})
            self._detail = self._detail.model_copy(
                update={**said, "config": hidden(self._config.model_dump(mode="json"))}
            )

    def _told(self, reporter: LocalReporter) -> dict[str, Any]:
        """Return the trial's length, if its process has told another one than was known here, and its notice."""
        notice = self._notices.get(self._at + 1)
        length = {} if reporter.length is None else {"target_batches": reporter.length}
        return length if notice is None else {**length, "notice": notice}

    def _progress(self, part: float) -> float:
        """Return how far the experiment is, by how far the trial is that runs."""
        if self._share_done is not None:
            return self._share_done({self._trials[self._at].id: part})
        return min((len(self._trials) - 1 + part) / (self._planned or 1), 1.0)

    def end_trial(
        self, reporter: LocalReporter, state: TrialState, error: rest.UserErrorInfo | None = None, batches: int = 0
    ) -> None:
        """End the trial that was begun last, or its stage.

        Parameters
        ----------
        reporter : LocalReporter
            It has what the trial reported.
        state : TrialState
        error : UserErrorInfo, optional
        batches : int
            How many were done; by default as many as were reported.
        """
        if self._spool is not None:
            self._spool.close()
            self._spool = None
        trial = self._trials[self._at]
        self._compare_by(reporter)
        self._write_reports(trial.id, reporter)
        reported = (*reporter.training_rows[-1:], *reporter.validation_rows[-1:])
        done = batches or max((row.batch for row in reported), default=0)
        changes: dict[str, Any] = {"state": state, "batches": done, "error": error, "ended": now()}
        changes |= self._told(reporter)
        if is_refused(trial.model_copy(update={"state": state, "error": error})):
            assert error is not None
            changes |= {"notice": refused_because(error), "best_validation": None, "best_at": None}
        told = (self._whole_epochs and not trial.stages) or not trial.target_batches
        if state is TrialState.COMPLETED and told and batches:
            # fit() counts the smaller last batch of each epoch, which a length in records does not know; and a script
            # says by itself how long it trains.
            changes["target_batches"] = batches
        noted = changes.get("notice", trial.notice)
        changes["stopped_early"] = state is TrialState.COMPLETED and noted.startswith(STOPPED_EARLY)
        trial = trial.model_copy(update=self._best(reporter) | {"warning": reporter.told} | changes)
        self._trials[self._at] = trial
        self._store.write_trial(trial)
        part = 1.0 if state is TrialState.COMPLETED else min(done / max(trial.target_batches, 1), 1.0)
        self._update(progress=self._progress(part))

    def why_interrupted(self) -> rest.UserErrorInfo:
        """Return why the trial under way was stopped: Jupyter interrupts a kernel too before it restarts it."""
        trial = self._trials[self._at]
        message = (
            f"interrupted (by Ctrl-C, Stop, or a restart of its kernel) after batch {trial.batches} of "
            f"{trial.target_batches}."
        )
        return rest.UserErrorInfo(type="Stopped", message=message, traceback="")

    def end(self, state: ExperimentState, error: rest.UserErrorInfo | None = None) -> None:
        """End the experiment; the checkpoints that the configuration does not keep go."""
        delete_superfluous(self._store, self._config)
        done = {"progress": 1.0} if state is ExperimentState.COMPLETED else {}
        self._update(state=state, error=error, ended=now(), seconds_left=None, **done)

    def _write_reports(self, trial_id: int, reporter: LocalReporter) -> None:
        store = self._store
        store.write_rows(trial_id, "training", reporter.training_rows)
        store.write_rows(trial_id, "validation", reporter.validation_rows)
        store.write_rows(trial_id, "logged", reporter.logged_rows)
        store.write_media(trial_id, reporter.logged_media)
        store.write_epochs(trial_id, reporter.epochs)
        store.write_samples(trial_id, reporter.samples)
        self._write_checkpoints(trial_id, reporter)

    def _write_checkpoints(self, trial_id: int, reporter: LocalReporter) -> None:
        validated = {row.batch: row.metrics for row in reporter.validation_rows}
        checkpoints = []
        for location, manifest in reporter.checkpoints:
            own = manifest.own_metrics
            metrics = validated.get(manifest.batch, {}) if own is None else own
            checkpoints.append(checkpoint_row(self._store.number, trial_id, location, manifest, metrics))
        self._store.write_checkpoints(trial_id, checkpoints)

    def _update(self, **changes: Any) -> None:
        values = [trial.best_validation for trial in self._trials if trial.best_validation is not None]
        best = (min(values) if self._detail.smaller_is_better else max(values)) if values else None
        warning = next((trial.warning for trial in self._trials if trial.warning), None)
        failed = sum(trial.state is TrialState.ERROR for trial in self._trials)
        known = {
            "trials": len(self._trials),
            "failed_trials": failed,
            "best_validation": best,
            "warning": warning,
        }
        self._detail = self._detail.model_copy(update=known | changes)
        self._store.write_experiment(self._detail)
