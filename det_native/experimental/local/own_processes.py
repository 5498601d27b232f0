"""One trial in processes of its own: its code is what was captured, as for a master, and the record is that of here."""

from __future__ import annotations

import os
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from det_native._version import PROTOCOL
from det_native.client.waiting import error_text
from det_native.errors import (
    DetError,
    ExperimentFailedError,
    ProblemsError,
    RequestError,
    UnsupportedFeatureError,
    UserCodeError,
    error_class,
)
from det_native.experimental.local.written_files import bringing_files
from det_native.frameworks import get_framework
from det_native.local.log import LogWriter
from det_native.local.store import LocalStore
from det_native.schema import rest
from det_native.schema.config import ExperimentConfig
from det_native.schema.gpus import visible_gpus
from det_native.schema.job import TrialJob, WarmStartSource
from det_native.schema.lengths import Length
from det_native.schema.manifests import CheckpointManifest, Framework
from det_native.schema.roles import processes_of, role_title, roles_of
from det_native.schema.states import ExitReason, TrialState
from det_native.schema.testing import testing_config

if TYPE_CHECKING:
    from det_harness.local.processes import RunEnd
    from det_harness.local.report import LocalReporter


class ProcessFailedError(UserCodeError):
    """An exception of the user's code in a process of its own.

    Parameters
    ----------
    message : str
    info : UserErrorInfo
        As the process has told it.
    """

    def __init__(self, message: str, info: rest.UserErrorInfo) -> None:
        super().__init__(message, traceback=info.traceback, cell=info.cell, file=info.file, line=info.line)
        self.info = info


def wants_processes(config: ExperimentConfig, framework: Framework) -> bool:
    """Return whether a trial cannot run in the process of its caller."""
    several = config.resources.slots_per_trial > 1 or len(roles_of(config.model_dump(mode="json"))) > 1
    return several or get_framework(framework).own_process


def train_in_processes(
    store: LocalStore,
    trial: rest.Trial,
    config: ExperimentConfig,
    reporter: LocalReporter,
    log: LogWriter,
    *,
    test: bool,
    stage: Length | None = None,
    resume: CheckpointManifest | None = None,
    warm_start: WarmStartSource | None = None,
) -> tuple[TrialState, int]:
    """Train one trial; return its state, which is CANCELED after Ctrl-C, and the batches done.

    Ctrl-C ends the training with a checkpoint; a second one ends the processes at once.

    Raises
    ------
    UserCodeError
        What the user's code raised there, with cell and line.
    DetError
        One of this package's, as it was raised there.
    ExperimentFailedError
        If a process failed in another way; what it printed says more.
    UnsupportedFeatureError
        If the code could not be captured.
    """
    from det_harness.local.processes import run_in_processes
    from det_harness.local.report import reporting
    from det_harness.local.run import interruptible

    job = _job(store, trial, testing_config(config) if test else config, test=test).model_copy(
        update={
            "stage": None if stage is None else stage.model_dump(),
            "resume": resume,
            "manifests": {manifest.uuid: manifest.sha256 for _, manifest in reporter.checkpoints},
            "warm_start": warm_start,
        }
    )
    size = processes_of(job.config, config.resources.slots_per_trial)
    with interruptible() as interrupted, reporting(reporter, test=test) as told:
        end = run_in_processes(
            job,
            size,
            told,
            lambda: interrupted.is_set() or reporter.stop_asked,
            partial(_keep, log, job.config),
            bringing_files(store, job, size, reporter),
        )
        # Within, so that a quick check which failed is not said to have passed.
        return _outcome(end, trial.id, interrupted=interrupted.is_set(), stopped_here=reporter.stop_asked)


def _outcome(end: RunEnd, trial_id: int, *, interrupted: bool, stopped_here: bool) -> tuple[TrialState, int]:
    """Return how processes have ended, and at which batch; raise what they failed by."""
    report = end.report
    if report is not None and not report.reason.failed:
        stopped = report.reason is ExitReason.STOPPED and not stopped_here
        return TrialState.CANCELED if stopped or interrupted else TrialState.COMPLETED, report.batch
    if report is not None and report.error is not None and report.error.traceback:
        raise own_error(report.error, trial_id) or ProcessFailedError(error_text(report.error, trial_id), report.error)
    if interrupted:  # before its training had begun
        return TrialState.CANCELED, 0
    if report is not None and report.error is not None:
        raise own_error(report.error, trial_id) or ExperimentFailedError(error_text(report.error, trial_id))
    how = end.detail or "nothing is known about why"
    raise ExperimentFailedError(
        f"A process of trial {trial_id} ended without a report: {how}. What it printed is above."
    )


def own_error(info: rest.UserErrorInfo, trial_id: int) -> DetError | None:
    """Return an error of this package's that a process has told, as it was raised there; None for any other.

    Where it was raised is a note of it, and its cause has the traceback.
    """
    kind = error_class(info.type)
    if kind is None or issubclass(kind, RequestError):
        return None
    # The last line names the module of the class: a class of the user's may have the same name.
    if info.traceback and f"\n{kind.__module__}.{info.type}: " not in info.traceback:
        return None
    try:
        error = kind(info.message, ()) if issubclass(kind, ProblemsError) else kind(info.message)
    except TypeError:  # it is made of more than a message, which is all that has come
        return None
    error.add_note(error_text(info, trial_id).partition("\n")[0].removesuffix(":") + ".")
    error.__cause__ = ProcessFailedError(error_text(info, trial_id), info)
    return error


def _keep(log: LogWriter, config: dict[str, Any], text: str, rank: int | None) -> None:
    with suppress(OSError):  # a full disk: no line of a log is worth the training
        log.write(text, "stdout", rank, role_title(config, rank))


def _job(store: LocalStore, trial: rest.Trial, config: ExperimentConfig, *, test: bool) -> TrialJob:
    from det_harness.local.bundle import blobs_of, kept_bundle

    bundle = kept_bundle(store.folder)
    slots = config.resources.slots_per_trial
    if bundle is None:
        framework = store.experiment().framework
        own = f"The framework {framework}" if get_framework(framework).own_process else "This trial"
        if config.searcher.name != "single":
            own = f"searcher.name: {config.searcher.name}"
        what = f"resources.slots_per_trial: {slots}" if slots > 1 else own
        raise UnsupportedFeatureError(
            f"{what} trains in processes of its own, which need the code of this program. It could not be captured: "
            f"{store.why_no_program()}"
        )
    gpus = visible_gpus()
    folder = store.trial_folder(trial.id)
    return TrialJob(
        protocol=PROTOCOL,
        directory=str(folder / "run" / "1"),
        starter=os.getpid(),
        blobs=blobs_of(store.folder),
        outputs=str(folder / "run" / "outputs"),
        bundle=bundle,
        bundle_id=bundle.id,
        checkpoints=str(folder / "files"),
        run_id=f"{store.id}-{trial.id}",
        experiment_id=store.number,
        trial_id=trial.id,
        config=config.model_dump(mode="json"),
        hparams=trial.hparams,
        trial_seed=trial.seed,
        devices=[gpus[slot % len(gpus)] for slot in range(max(slots, 1))] if gpus else [],
        threads=len(os.sched_getaffinity(0)),
        test=test,
    )
