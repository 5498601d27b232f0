"""What becomes of a trial when its run in a process of the user's has ended: facts in, a decision out, no I/O."""

from __future__ import annotations

from det_native.master.flow.decide import Cancel, Complete, Decision, Facts, Fail, Refuse, error_of, missing_of
from det_native.schema.kernel_runs import KernelProcess
from det_native.schema.reports import UserErrorInfo
from det_native.schema.states import ExitReason

#: It ended in the middle of it, and nobody had asked the master for that.
STOPPED = "Stopped"
_ONCE = "A training in a kernel or script is not tried again: run its cell anew."


def decide_kernel(facts: Facts, process: KernelProcess, batches: int) -> Decision:
    """Return what becomes of the trial, which is never run again: only its user can do that.

    Parameters
    ----------
    facts : Facts
        Of a process that is not known to be gone, ``process.interrupted`` says why it counts as that.
    batches : int
        That were done, as far as was reported.
    """
    reason = facts.exit.reason if facts.exit is not None else None
    missing = missing_of(facts)
    if reason is ExitReason.COMPLETED and missing is None:
        return Complete()
    if facts.asked.killed or facts.asked.paused:
        return Cancel()
    length = facts.trial.length
    where = f"after batch {batches} of {length}." if length else f"after batch {batches}."
    if facts.exit is None:
        return Cancel(_stopped(f"{who_ended(process, facts.process.interrupted)}, {where}", batches))
    if reason is ExitReason.STOPPED:
        why = "interrupted (by Ctrl-C, Stop, or a restart of its kernel)"
        return Cancel(_stopped(f"{why} {where}", batches))
    error = missing or error_of(facts)
    return Refuse(error) if reason is ExitReason.INVALID_HYPERPARAMETERS else Fail(error, _ONCE)


def who_ended(process: KernelProcess, silent: str = "") -> str:
    """Return what has ended a run whose process has not said so."""
    if silent:
        return f"{silent}, and it counts as ended"
    if process.in_kernel:
        return "its kernel was restarted or ended in the middle of it"
    return f"its process ({process.pid}) ended in the middle of it"


def _stopped(message: str, batch: int) -> UserErrorInfo:
    return UserErrorInfo(type=STOPPED, message=message, traceback="", batch=batch)
