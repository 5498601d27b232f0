"""What becomes of a trial when one of its runs has ended: facts in, a decision out, no I/O."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass

from det_native.schema.reports import ExitReport, UserErrorInfo
from det_native.schema.states import ExitReason

# The errors that are gone with the next run, since it takes the checkpoint before.
UNUSABLE = frozenset({"CheckpointCorruptError", "CheckpointNotFoundError"})

# There is no room: the trial waits until there is some, and that is no restart.
FULL = "DiskFullError"
# The file system became read-only, or died. Where it was the master's own, too, it is back.
FAILED = "DiskFailedError"

# It was told to end, and not by the master.
WORKER_STOPPED = "WorkerStopped"

# A rule of the API that the program breaks: it does so however often it is run.
_LASTING = frozenset({"TrialDefinitionError", "InvalidDataError", "DivergedError", "WorkerEnvironmentError"})
_OWN_ERRORS = (ExitReason.USER_ERROR, ExitReason.HARNESS_ERROR)

_ADDRESS = re.compile(r"0x[0-9a-fA-F]+")


@dataclass(frozen=True)
class ProcessEnd:
    """How the process of a run ended.

    Attributes
    ----------
    detail : str
        What the launcher knows of it.
    begun : bool
        A worker of the run has taken its job, as far as the launcher knows.
    interrupted : str
        What has ended the run where that has nothing to do with what it runs: "the machine a is being drained".
    memory : str
        How much it had, if the system has killed it for want of memory.
    hung : str
        Why the run was ended, if the master has done so because nothing came from it; "" otherwise.
    """

    detail: str
    begun: bool = True
    interrupted: str = ""
    memory: str = ""
    hung: str = ""


@dataclass(frozen=True)
class Asked:
    """What was asked of a run.

    Attributes
    ----------
    killed : bool
        Somebody asked for the end of the experiment.
    paused : bool
        The run was asked to end, so that another one continues later.
    stopped_early : bool
        The search has had the trial end early: it has done what it was to do, however its run ended.
    """

    killed: bool = False
    paused: bool = False
    stopped_early: bool = False


@dataclass(frozen=True)
class TrialFacts:
    """What a trial has done, and may do.

    Attributes
    ----------
    may_restart : bool
        Whether a trial whose run hung is run again.
    fingerprint : str or None
        Of the trial's last error that its worker could still tell.
    length : int or None
        Batches that the trial is to do.
    trained : bool
        A batch of the trial was done, by this run or an earlier one.
    batch_size : int or None
        Of all its slots, as far as it is known.
    """

    restarts: int = 0
    max_restarts: int = 5
    may_restart: bool = True
    fingerprint: str | None = None
    length: int | None = None
    trained: bool = True
    batch_size: int | None = None


@dataclass(frozen=True)
class Storage:
    """What is stored of a run, and what has become of the disks.

    Attributes
    ----------
    last_row : int
        The batch of the last training metrics of the run that are stored, -1 if there are none.
    last_seq : int or None
        The number of the last report of the run that is stored; None if that is not known.
    full : bool
        It could not be started since a disk is full.
    lost_files : str
        Which files of its bundle the master's store has lost, if it ended for want of them; "" otherwise.
    disk_failed : bool
        The disk of the master and its workers took nothing for a while, since the run began.
    """

    last_row: int = -1
    last_seq: int | None = None
    full: bool = False
    lost_files: str = ""
    disk_failed: bool = False


@dataclass(frozen=True)
class Facts:
    """What is known of a trial at the end of a run; `exit` is the harness's report, None if there is none."""

    exit: ExitReport | None
    process: ProcessEnd
    asked: Asked
    trial: TrialFacts
    storage: Storage


@dataclass(frozen=True)
class Complete:
    """The trial has done what it was to do, or its own code has ended it early."""


@dataclass(frozen=True)
class Cancel:
    """The trial ends because somebody asked for it; `error` says why it does where nobody has asked the master."""

    error: UserErrorInfo | None = None


@dataclass(frozen=True)
class Suspend:
    """The trial waits, to be continued from its latest checkpoint; `reason` is a line for its log.

    `for_room` says that it waits for room on a disk, `for_files` that it does for what its bundle has lost.
    """

    reason: str
    for_room: bool = False
    for_files: str = ""


@dataclass(frozen=True)
class Refuse:
    """The trial ends, and its search hears that its hyperparameters are invalid: no failure. `error` says why."""

    error: UserErrorInfo


@dataclass(frozen=True)
class Fail:
    """The trial ends in an error; `reason` is a line for its log."""

    error: UserErrorInfo
    reason: str


@dataclass(frozen=True)
class Restart:
    """The trial is run again from its latest checkpoint; `restarts` counts this one too."""

    restarts: int
    fingerprint: str | None
    error: UserErrorInfo
    reason: str


Decision = Complete | Cancel | Suspend | Refuse | Fail | Restart


def decide(facts: Facts) -> Decision:
    """Return what becomes of the trial.

    An error is tried once more, and not again if it then is the same at the same batch; not at all if it is one that
    comes however often the program is run, or one of the user's code before anything was trained. A process that
    vanished is restarted as long as there are restarts left, and so is one that somebody else than the master had end
    (SIGTERM, when a machine shuts down): its trial has not done what it was to do. These ends do not count as
    restarts: the run was asked to end; its machine was taken away by plan, or the head of its cluster restarted; a full
    or failed disk ended it; files of its bundle were lost. A run that says that it has done
    all is not believed where fewer batches, or metrics of fewer batches, are here.
    """
    reason = facts.exit.reason if facts.exit is not None else None
    missing = missing_of(facts)
    if reason is ExitReason.COMPLETED and missing is None:
        return Complete()
    if facts.asked.killed:
        return Cancel()
    error = missing or error_of(facts)
    goes_on = _goes_on(facts, error)
    if facts.asked.stopped_early:
        return Complete()
    if goes_on is not None:
        return goes_on
    if facts.process.hung and not facts.trial.may_restart:
        return Fail(error, "The trial is not tried again (watchdog.action: end).")
    if reason is ExitReason.INVALID_HYPERPARAMETERS:
        return Refuse(error)
    if reason in _OWN_ERRORS and error.type in _LASTING:
        return Fail(error, "Each further attempt would end with the same error; the trial is not tried again.")
    if reason is ExitReason.USER_ERROR and not facts.trial.trained:
        return Fail(error, "The user's code failed before a batch was done; the trial is not tried again.")
    reported = reason in _OWN_ERRORS and error.type not in UNUSABLE
    fingerprint = fingerprint_of(error) if reported else None
    if fingerprint is not None and fingerprint == facts.trial.fingerprint:
        return Fail(error, "The same error came again at the same batch; the trial is not tried again.")
    if facts.trial.restarts >= facts.trial.max_restarts:
        return Fail(error, f"The trial has no restarts left (max_restarts: {facts.trial.max_restarts}).")
    return Restart(facts.trial.restarts + 1, fingerprint or facts.trial.fingerprint, error, _why(error, facts))


def _goes_on(facts: Facts, error: UserErrorInfo) -> Suspend | None:
    """Return how the trial goes on where the end of the run is no failure, None if it is one."""
    reason = facts.exit.reason if facts.exit is not None else None
    full = facts.storage.full or (reason in _OWN_ERRORS and error.type == FULL)
    if facts.asked.paused and (reason in (None, ExitReason.STOPPED) or full):
        return Suspend(_how_suspended(facts.exit, full=full))
    if facts.process.interrupted and reason in (None, ExitReason.STOPPED, ExitReason.PEER_FAILED):
        end = f"ended after batch {facts.exit.batch}" if reason is ExitReason.STOPPED and facts.exit else "ended"
        return Suspend(
            f"The run {end}: {facts.process.interrupted}. The trial goes on elsewhere; no restart is counted."
        )
    if facts.exit is None and not facts.process.begun:
        return Suspend("The master ended before the worker had begun. The trial is tried again; no restart is counted.")
    if facts.storage.disk_failed and (reason is None or (reason is ExitReason.HARNESS_ERROR and error.type == FAILED)):
        return Suspend(
            "The disk failed under it and is back. It goes on from its latest checkpoint; no restart is counted."
        )
    if full:
        return Suspend(f"{error.message.rstrip('.')}. It goes on when there is room; no restart is counted.", True)
    if facts.storage.lost_files and reason in _OWN_ERRORS:
        line = f"The trial {facts.storage.lost_files}. It then goes on; no restart is counted."
        return Suspend(line, for_files=facts.storage.lost_files)
    return None


def missing_of(facts: Facts) -> UserErrorInfo | None:
    """Return what a run lacks that says that it has done all, None if it is all there."""
    exit = facts.exit
    if exit is None or exit.reason is not ExitReason.COMPLETED or exit.last_row is None:
        return None
    why = "What your code forks must not come back into the training."
    if facts.trial.length is not None and exit.batch < facts.trial.length and not exit.early:
        what = f"after batch {exit.batch} of {facts.trial.length}"
    elif facts.storage.last_row < exit.last_row:
        what = f"but its metrics are here up to batch {max(facts.storage.last_row, 0)} only, of {exit.last_row}"
    elif facts.storage.last_seq is not None and facts.storage.last_seq + 1 < exit.seq:
        what, why = (
            f"but of its {exit.seq} reports {facts.storage.last_seq} are here",
            "The folder of the run has lost some.",
        )
    else:
        return None
    message = f"The run said that it has done all, {what}. {why}"
    return UserErrorInfo(type="IncompleteRun", message=message, traceback="", batch=exit.batch)


def fingerprint_of(error: UserErrorInfo) -> str:
    """Return what is the same for errors that are the same: type, message without addresses, and batch.

    Not the rank: of processes that all fail by the same error, another one may be the first next time.
    """
    message = _ADDRESS.sub("0x", error.message)
    return hashlib.sha256(f"{error.type}\0{message}\0{error.batch}".encode("utf-8", "replace")).hexdigest()


def error_of(facts: Facts) -> UserErrorInfo:
    if facts.process.hung:
        return UserErrorInfo(type="TrialHung", message=facts.process.hung, traceback="")
    if facts.exit is None and facts.process.memory:
        return UserErrorInfo(type="OutOfMemory", message=_out_of_memory(facts), traceback="")
    if facts.exit is None and facts.process.detail.startswith("exit code 0"):
        message = (
            "The worker process ended in the midst of the training as if it had succeeded (exit code 0): the code has "
            "called os._exit(), or a process that it forked goes on instead of it."
        )
        return UserErrorInfo(type="WorkerDied", message=message, traceback="")
    if facts.exit is None:
        message = f"The worker process ended without a report: {facts.process.detail or 'nothing is known about why'}."
        return UserErrorInfo(type="WorkerDied", message=message, traceback="")
    if facts.exit.error is not None:
        return facts.exit.error
    if facts.exit.reason is ExitReason.STOPPED:
        message = f"The worker was told to end (SIGTERM), not by the master, and did so after batch {facts.exit.batch}."
        return UserErrorInfo(type=WORKER_STOPPED, message=message, traceback="", batch=facts.exit.batch)
    message = f"The run ended with {facts.exit.reason} after batch {facts.exit.batch}."
    return UserErrorInfo(type=str(facts.exit.reason), message=message, traceback="", batch=facts.exit.batch)


def _out_of_memory(facts: Facts) -> str:
    size = f", with a batch size of {facts.trial.batch_size}" if facts.trial.batch_size else ""
    peak = f"{facts.process.memory} at its peak{size}"
    return (
        f"The system killed the worker for want of memory: it had {peak}. A smaller batch or "
        "model needs less, and so do fewer trials at a time or fewer worker processes of a data loader."
    )


def _how_suspended(exit: ExitReport | None, *, full: bool) -> str:
    if full:
        return "Paused; the disk is full, so that its last batches are in no checkpoint: the one before counts."
    if exit is None:
        return "Paused; the worker ended without a checkpoint of its last batches, the one before counts."
    return f"Paused after batch {exit.batch}."


def _why(error: UserErrorInfo, facts: Facts) -> str:
    first = error.message.splitlines()[0] if error.message else ""
    what = f"{error.type}: {first}" if first and facts.exit is not None else first or error.type
    if error.process:
        what = f"[{error.process}] {what}"
    stop = "" if what.endswith((".", "!", "?")) else "."
    return f"{what}{stop} Restart {facts.trial.restarts + 1} of at most {facts.trial.max_restarts}."
