"""Reports of workers: taken in order, once each, from the trial's current run only."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice
from operator import ge
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, bindparam, select

from det_native.errors import FencedError, NotFoundError, RequestError
from det_native.master.store import (
    artifacts,
    checkpoints,
    clocks,
    epochs,
    events,
    logged,
    media,
    metrics,
    summaries,
    system,
    trials,
)
from det_native.master.store import experiments as experiment_store
from det_native.master.store import logs as log_store
from det_native.master.store import runs as run_store
from det_native.master.store.database import Transaction
from det_native.master.store.encoding import now
from det_native.master.store.tables import experiments, runs
from det_native.master.store.tables import trials as trial_table
from det_native.schema import rest
from det_native.schema.states import ExitReason, ExperimentState, MetricKind, RunState, TrialState

if TYPE_CHECKING:
    from det_native.master.store.tables import AnyRow


@dataclass
class Accepted:
    """What became of a batch of reports.

    Attributes
    ----------
    through : int
        Everything up to this sequence number is stored.
    stop : bool
        The experiment wants the worker to end.
    decisive : bool
        The master has something to decide: the run has said why it ends.
    """

    through: int
    stop: bool
    decisive: bool = False


@dataclass
class _Run:
    """The run that reports; `changes` are the columns of its row that its reports change.

    `outdated` are the kinds of metrics whose summaries have to be worked out again.
    """

    row: AnyRow
    run_id: str
    metric: str
    batches: int
    stored: dict[str, tuple[int, int]]
    changes: dict[str, Any] = field(default_factory=dict)
    hints: dict[str, dict[str, Any]] = field(default_factory=dict)
    values: list[float] = field(default_factory=list)
    outdated: set[MetricKind] = field(default_factory=set)
    decisive: bool = False


def accept(transaction: Transaction, run_id: str, batch: rest.ReportBatch) -> Accepted:
    """Store the reports that are new; all of them or, by an error, none.

    Raises
    ------
    NotFoundError
        If there is no such run.
    FencedError
        If the run is not its trial's current one any more, or has ended.
    RequestError
        400 for a gap in the sequence numbers or a report that contradicts itself.
    """
    row = _current(transaction.connection, run_id)
    fresh = [report for report in batch.reports if report.seq > row.last_seq]
    if fresh and row.state == RunState.ENDED:
        raise FencedError(f"Run {run_id} has ended; trial {row.trial_id} takes no more reports from it.")
    stored = {kind.value: (row._mapping[f"{kind}_rows"], row._mapping[f"{kind}_last"]) for kind in MetricKind}
    run = _Run(row=row, run_id=run_id, metric=row.metric, batches=row.batches, stored=stored)
    through = row.last_seq
    if batch.waiting is not None and row.state != RunState.ENDED:
        _note_waiting(transaction, row, batch.waiting)
    for report in fresh:
        if report.seq <= through:
            continue
        if report.seq != through + 1:
            raise RequestError(400, f"Report {through + 1} of run {run_id} is missing before report {report.seq}.")
        _apply(transaction, run, report)
        through = report.seq
    if through > row.last_seq:
        run_store.update_row(transaction, run_id, last_seq=through, batches=run.batches, **run.changes)
        _keep_best(transaction, run)
        summaries.refresh(transaction, run.row.trial_id, run.outdated)
        if run.batches > row.batches:
            clocks.note(transaction, row.trial_id, row.number, run.batches, created=row.created)
        for hint in run.hints.values():
            events.emit(transaction, row.owner, "metrics", row.experiment_id, row.trial_id, hint)
    return Accepted(through, _must_stop(row), run.decisive)


def standing(connection: Connection, run_id: str) -> Accepted:
    """Return how far the reports of a run have come, for one that has nothing to report.

    Raises
    ------
    NotFoundError
        If there is no such run.
    FencedError
        If the run is not its trial's current one any more.
    """
    row = _current(connection, run_id)
    return Accepted(row.last_seq, _must_stop(row))


def accept_exit(transaction: Transaction, run_id: str, report: rest.ExitReport) -> None:
    """Take a run's exit report from the file that it left, if it did not come as a report."""
    row = _row(transaction.connection, run_id)
    if row.current != run_id or row.exit is not None:
        return
    run = _Run(row=row, run_id=run_id, metric=row.metric, batches=row.batches, stored={})
    _apply_exit(transaction, run, report)
    run_store.update_row(transaction, run_id, batches=run.batches, **run.changes)
    summaries.refresh(transaction, run.row.trial_id, run.outdated)


def best(connection: Connection, run_id: str) -> float | None:
    """Return the best value of the searcher's metric over the run's whole experiment.

    Raises
    ------
    NotFoundError
        If there is no such run.
    FencedError
        If the run is not its trial's current one any more, or has ended.
    """
    row = _current(connection, run_id)
    if row.state == RunState.ENDED or row.exit is not None:  # its process may take a moment longer
        raise FencedError(f"Run {run_id} has ended.")
    value: float | None = row.experiment_best
    return value


def refresh_best(transaction: Transaction, trial_id: int) -> None:
    """Work out the best values again, from the rows that are shown (a restart takes rows away)."""
    trial = trials.get(transaction.connection, trial_id)
    experiment = experiment_store.get(transaction.connection, trial.experiment_id)
    choose = min if experiment.smaller_is_better else max
    found = metrics.validations(transaction.connection, trial_id, experiment.metric)
    values = [value for _, value in found if math.isfinite(value)]
    # Rows have no times: a value that is the best again was there earlier than the one that is gone.
    kept = {} if values else {"best_at": None}
    trials.update_row(transaction, trial_id, best_validation=choose(values, default=None), **kept)
    _refresh_experiment(transaction, experiment)


def forget_best(transaction: Transaction, trial_id: int) -> None:
    """Have a trial count no more where trials are compared; its metrics stay."""
    trials.update_row(transaction, trial_id, best_validation=None, best_at=None)
    experiment_id = trials.get(transaction.connection, trial_id).experiment_id
    _refresh_experiment(transaction, experiment_store.get(transaction.connection, experiment_id))


def _refresh_experiment(transaction: Transaction, experiment: rest.Experiment) -> None:
    choose = min if experiment.smaller_is_better else max
    of_experiment = trials.of_experiment(transaction.connection, experiment.id)
    values = [trial.best_validation for trial in of_experiment if trial.best_validation is not None]
    value = choose(values, default=None)
    best_trial = next((trial.id for trial in of_experiment if trial.best_validation == value), None)
    experiment_store.set_best(transaction, experiment.id, value, best_trial)


_FACTS = (
    select(
        runs.c.run_id,
        runs.c.start_batch,
        runs.c.number,
        runs.c.last_seq,
        runs.c.state,
        runs.c.trial_id,
        runs.c.batches,
        runs.c.created,
        *(runs.c[f"{kind}_{column}"] for kind in MetricKind for column in ("rows", "last")),
        runs.c.exit,
        runs.c.stop_asked,
        trial_table.c.run_id.label("current"),
        experiments.c.id.label("experiment_id"),
        experiments.c.owner,
        experiments.c.state.label("experiment_state"),
        experiments.c.metric,
        experiments.c.in_kernel,
        experiments.c.best_validation.label("experiment_best"),
    )
    .join(trial_table, trial_table.c.id == runs.c.trial_id)
    .join(experiments, experiments.c.id == trial_table.c.experiment_id)
    .where(runs.c.run_id == bindparam("run"))
)


def _row(connection: Connection, run_id: str) -> AnyRow:
    row = connection.execute(_FACTS, {"run": run_id}).first()
    if row is None:
        raise NotFoundError(f"There is no run {run_id}.")
    return row


def _must_stop(row: AnyRow) -> bool:
    """Whether a worker is to end. One that was asked to once is held to it: it may be about to end already."""
    return bool(row.stop_asked) or row.experiment_state != ExperimentState.ACTIVE


def _current(connection: Connection, run_id: str) -> AnyRow:
    row = _row(connection, run_id)
    if row.current != run_id:
        raise FencedError(f"Run {run_id} is not the current attempt at trial {row.trial_id} any more; it must end.")
    return row


def _apply(transaction: Transaction, run: _Run, report: rest.Report) -> None:
    match report:
        case rest.MetricsReport():
            _check_columns(run, report)
            _apply_metrics(transaction, run, report)
        case rest.EpochReport():
            epochs.add(transaction, run.row.trial_id, run.row.number, report.row)
        case rest.StartedReport():
            _apply_started(transaction, run, report)
        case rest.CheckpointReport() | rest.CheckpointDeletedReport():
            _apply_checkpoint(transaction, run, report)
        case rest.WarningReport():
            _apply_warning(transaction, run, report)
        case rest.ComparisonReport():
            _apply_comparison(transaction, run, report)
        case rest.NoValidationReport():
            _apply_no_validation(transaction, run)
        case rest.RowsReport():
            _apply_rows(transaction, run, report)
        case rest.MediaReport() | rest.ArtifactsReport():
            _apply_outputs(transaction, run, report)
        case rest.SystemReport():
            system.add(transaction, run.row.trial_id, run.row.number, report.samples)
        case rest.ExitReport():
            _apply_exit(transaction, run, report)


def _check_columns(run: _Run, report: rest.MetricsReport) -> None:
    rows = len(report.batches)
    columns: list[tuple[str, Sequence[Any]]] = [*report.metrics.items(), *report.values.items()]
    for name, values in columns:
        if len(values) != rows:
            raise RequestError(
                400, f"Report {report.seq} of run {run.run_id}: {name!r} has {len(values)} values for {rows} batches."
            )
    batches = report.batches
    if batches and (batches[0] < 0 or any(map(ge, batches, islice(batches, 1, None)))):
        raise RequestError(400, f"Report {report.seq} of run {run.run_id}: the batches do not increase.")


def _apply_metrics(transaction: Transaction, run: _Run, report: rest.MetricsReport) -> None:
    kind = report.kind.value
    rows, last = run.stored[kind]
    # Behind the restart, or in the place of another value: what a summary has may count no more.
    replaces = not rows and run.row.number > 1
    if report.batches and (report.kind is MetricKind.LOGGED or (rows and report.batches[0] == last)):
        replaces |= report.batches[0] <= last
        report, rows, last = logged.merged(transaction, run.row, (rows, last), report)
    hint = metrics.add(transaction, run.row.trial_id, run.row.number, (rows, last), report)
    if hint is None:
        return
    new = hint.pop("rows")
    if replaces or (report.kind is MetricKind.TRAINING and summaries.is_due(transaction, run.row)):
        run.outdated.add(report.kind)
    elif report.kind is not MetricKind.TRAINING:
        summaries.extend(transaction, run.row, report, new)
    rows, last = rows + new, hint["batch"]
    run.stored[kind] = (rows, last)
    run.changes.update({f"{kind}_rows": rows, f"{kind}_last": last})
    run.hints[kind] = hint
    run.batches = max(run.batches, last)
    if report.kind is MetricKind.VALIDATION:
        values = report.metrics.get(run.metric, [])
        run.values.extend(value for value in values if value is not None and math.isfinite(value))


def _apply_outputs(transaction: Transaction, run: _Run, report: rest.MediaReport | rest.ArtifactsReport) -> None:
    if isinstance(report, rest.MediaReport):
        _apply_media(transaction, run, report)
    else:
        artifacts.add(transaction, run.row.trial_id, run.row.number, report.files, report.removed)


def _apply_media(transaction: Transaction, run: _Run, report: rest.MediaReport) -> None:
    hint = media.add(transaction, run.row.trial_id, run.row.number, report.items)
    if hint is not None:
        run.batches = max(run.batches, hint["batch"])
        events.emit(transaction, run.row.owner, "media", run.row.experiment_id, run.row.trial_id, hint)


def _apply_started(transaction: Transaction, run: _Run, report: rest.StartedReport) -> None:
    run.batches = report.batch
    run_store.update_row(
        transaction, run.run_id, state=RunState.RUNNING, start_batch=report.batch, batches=report.batch
    )
    trials.set_state(transaction, run.row.trial_id, TrialState.RUNNING)
    if report.notice:
        trials.set_notice(transaction, run.row.trial_id, report.notice)
        sentence = f"The trial has {report.notice}"
        log_store.add(transaction, run.row.trial_id, run.run_id, "system", [sentence])
    if report.length is not None:
        trials.update_row(transaction, run.row.trial_id, target_batches=report.length)
    if run.row.number > 1:
        refresh_best(transaction, run.row.trial_id)
        run.outdated.update(MetricKind)
        artifacts.begin(transaction, run.row.trial_id, run.row.number)
    events.trial_changed(transaction, trials.get(transaction.connection, run.row.trial_id))


def _apply_checkpoint(
    transaction: Transaction, run: _Run, report: rest.CheckpointReport | rest.CheckpointDeletedReport
) -> None:
    if isinstance(report, rest.CheckpointDeletedReport):
        of_trial = {one.uuid for one in checkpoints.of_trial(transaction.connection, run.row.trial_id)}
        checkpoints.set_deleted(transaction, {report.uuid} & of_trial)
        return
    checkpoint = checkpoints.add(
        transaction, report, trial_id=run.row.trial_id, experiment_id=run.row.experiment_id, run_id=run.run_id
    )
    if checkpoint is not None:
        if run.row.in_kernel and report.location.startswith("/"):
            place = report.location.rpartition("/")[0]
            experiment_store.set_kept_at(transaction, run.row.experiment_id, place)
        data = checkpoint.model_dump(mode="json")
        events.emit(transaction, run.row.owner, "checkpoint", run.row.experiment_id, run.row.trial_id, data)


def _apply_warning(transaction: Transaction, run: _Run, report: rest.WarningReport) -> None:
    trials.update_row(transaction, run.row.trial_id, warning=report.text)
    events.trial_changed(transaction, trials.get(transaction.connection, run.row.trial_id))
    experiment = experiment_store.get(transaction.connection, run.row.experiment_id)
    events.experiment_changed(transaction, experiment, run.row.owner)


def _apply_comparison(transaction: Transaction, run: _Run, report: rest.ComparisonReport) -> None:
    """Keep what the first trial says that has seen its metrics; the others of a search are compared by that."""
    if report.name == run.metric or run.row.experiment_best is not None:
        return
    experiment_store.compare_by(
        transaction, run.row.experiment_id, report.name, smaller_is_better=report.smaller_is_better
    )
    run.metric = report.name
    better = "smaller" if report.smaller_is_better else "greater"
    sentence = f"Trials are compared by {report.name}, which the training reports; a {better} value is better."
    log_store.add(transaction, run.row.trial_id, run.run_id, "system", [sentence])
    experiment = experiment_store.get(transaction.connection, run.row.experiment_id)
    events.experiment_changed(transaction, experiment, run.row.owner)


def _apply_no_validation(transaction: Transaction, run: _Run) -> None:
    """Keep that rows of training metrics stand for validations: all trials of an experiment are alike in that."""
    if experiment_store.set_without_validation(transaction, run.row.experiment_id):
        experiment = experiment_store.get(transaction.connection, run.row.experiment_id)
        events.experiment_changed(transaction, experiment, run.row.owner)


def _apply_rows(transaction: Transaction, run: _Run, report: rest.RowsReport) -> None:
    """Add rows to the experiment's report; what another trial or a restart has found, too, is there once."""
    if experiment_store.add_rows(transaction, run.row.experiment_id, report.rows):
        experiment = experiment_store.get(transaction.connection, run.row.experiment_id)
        events.experiment_changed(transaction, experiment, run.row.owner)


def _apply_exit(transaction: Transaction, run: _Run, report: rest.ExitReport) -> None:
    run.changes["exit"] = report.model_dump(mode="json")
    run.batches = max(run.batches, report.batch)
    run.decisive = True
    run.outdated.add(MetricKind.TRAINING)
    if report.reason is ExitReason.COMPLETED and report.early and report.batch > 0:
        # A loop that was left has done all that it was to do.
        trials.update_row(transaction, run.row.trial_id, target_batches=report.batch)
    if report.error is not None and report.reason is not ExitReason.INVALID_HYPERPARAMETERS:
        data = report.error.model_dump(mode="json")
        events.emit(transaction, run.row.owner, "error", run.row.experiment_id, run.row.trial_id, data)


def _note_waiting(transaction: Transaction, row: AnyRow, text: str) -> None:
    trials.set_waiting(transaction, row.trial_id, text)
    if text:
        log_store.add(transaction, row.trial_id, row.run_id, "system", [f"The trial {text}."])
    events.trial_changed(transaction, trials.get(transaction.connection, row.trial_id))
    experiment = experiment_store.get(transaction.connection, row.experiment_id)
    events.experiment_changed(transaction, experiment, row.owner)


def _keep_best(transaction: Transaction, run: _Run) -> None:
    if not run.values:
        return
    experiment = experiment_store.get(transaction.connection, run.row.experiment_id)
    choose = min if experiment.smaller_is_better else max
    value = choose(run.values)
    trial = trials.get(transaction.connection, run.row.trial_id).best_validation
    if trial is None or choose(value, trial) != trial:
        trials.update_row(transaction, run.row.trial_id, best_validation=value, best_at=now())
    best = experiment.best_validation
    if best is None or choose(value, best) != best:
        experiment_store.set_best(transaction, run.row.experiment_id, value, run.row.trial_id)
