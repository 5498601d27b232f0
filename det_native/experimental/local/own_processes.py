"""One trial in processes of its own: its code is what was captured, as for a master, and the record is that of here."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

from det_native._version import PROTOCOL
from det_native.client.waiting import error_text
from det_native.errors import ExperimentFailedError, UnsupportedFeatureError, UserCodeError
from det_native.frameworks import get_framework
from det_native.local.log import LogWriter
from det_native.local.store import LocalStore
from det_native.schema import rest
from det_native.schema.config import ExperimentConfig
from det_native.schema.gpus import visible_gpus
from det_native.schema.job import TrialJob
from det_native.schema.manifests import Framework
from det_native.schema.states import ExitReason, TrialState
from det_native.schema.testing import testing_config

if TYPE_CHECKING:
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
    return config.resources.slots_per_trial > 1 or get_framework(framework).own_process


def train_in_processes(
    store: LocalStore,
    trial: rest.Trial,
    config: ExperimentConfig,
    reporter: LocalReporter,
    log: LogWriter,
    *,
    test: bool,
) -> tuple[TrialState, int]:
    """Train one trial; return its state, which is CANCELED after Ctrl-C, and the batches done.

    Ctrl-C ends the training with a checkpoint; a second one ends the processes at once.

    Raises
    ------
    UserCodeError
        What the user's code raised there, with cell and line.
    ExperimentFailedError
        If a process failed in another way; what it printed says more.
    UnsupportedFeatureError
        If the code could not be captured.
    """
    from det_harness.local.processes import run_in_processes
    from det_harness.local.report import reporting
    from det_harness.local.run import interruptible

    job = _job(store, trial, testing_config(config) if test else config, test=test)
    size = 1 if config.resources.native_parallel else config.resources.slots_per_trial
    with interruptible() as interrupted, reporting(reporter, test=test) as told:
        word = run_in_processes(job, size, told, interrupted.is_set, lambda text, rank: _keep(log, text, rank))
    if word is not None and not word.reason.failed:
        stopped = word.reason is ExitReason.STOPPED
        return TrialState.CANCELED if stopped or interrupted.is_set() else TrialState.COMPLETED, word.batch
    if word is not None and word.error is not None and word.error.traceback:
        raise ProcessFailedError(error_text(word.error, trial.id), word.error)
    if interrupted.is_set():  # before its training had begun
        return TrialState.CANCELED, 0
    if word is not None and word.error is not None:
        raise ExperimentFailedError(error_text(word.error, trial.id))
    raise ExperimentFailedError(f"A process of trial {trial.id} ended without a word; what it printed is above.")


def _keep(log: LogWriter, text: str, rank: int | None) -> None:
    with suppress(OSError):  # a full disk: no line of a log is worth the training
        log.write(text, "stdout", rank)


def _job(store: LocalStore, trial: rest.Trial, config: ExperimentConfig, *, test: bool) -> TrialJob:
    from det_harness.local.bundle import blobs_of, kept_bundle

    bundle = kept_bundle(store.folder)
    slots = config.resources.slots_per_trial
    if bundle is None:
        what = f"resources.slots_per_trial: {slots}" if slots > 1 else f"The framework {store.experiment().framework}"
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
        bundle=bundle,
        bundle_id=bundle.id,
        checkpoints=str(folder / "files"),
        run_id=f"{store.id}-{trial.id}",
        experiment_id=store.number,
        trial_id=trial.id,
        config=config.model_dump(mode="json"),
        hparams=trial.hparams,
        trial_seed=trial.seed,
        devices=[gpus[slot % len(gpus)] for slot in range(slots)] if gpus else [],
        threads=len(os.sched_getaffinity(0)),
        test=test,
    )
