"""What becomes of a trial in a kernel: the rules alone, over all facts."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from det_native.master.flow.decide import (
    Asked,
    Cancel,
    Complete,
    Facts,
    Fail,
    ProcessEnd,
    Refuse,
    Storage,
    TrialFacts,
)
from det_native.master.flow.decide_kernel import STOPPED, decide_kernel
from det_native.schema.kernel_runs import KernelProcess
from det_native.schema.rest import ExitReport, UserErrorInfo
from det_native.schema.states import ExitReason

BATCHES = st.integers(0, 1000)
ERRORS = st.sampled_from(["ValueError", "DiskFullError", "CheckpointCorruptError", "InvalidDataError"])


@st.composite
def exits(draw: st.DrawFn) -> ExitReport | None:
    reason = draw(st.none() | st.sampled_from(ExitReason))
    if reason is None:
        return None
    error = UserErrorInfo(type=draw(ERRORS), message="boom", traceback="") if reason.failed else None
    batch = draw(BATCHES)
    last_row = draw(st.none() | st.integers(-1, batch))
    return ExitReport(seq=4, reason=reason, batch=batch, error=error, early=draw(st.booleans()), last_row=last_row)


FACTS = st.builds(
    Facts,
    exits(),
    st.builds(ProcessEnd, st.just("its process is gone"), interrupted=st.sampled_from(["", "nothing was heard of it"])),
    st.builds(Asked, killed=st.booleans(), paused=st.booleans()),
    st.builds(TrialFacts, length=st.none() | st.integers(1, 1000), restarts=st.just(0)),
    st.builds(Storage, last_row=st.integers(-1, 1000), last_seq=st.integers(0, 4)),
)
PROCESSES = st.builds(KernelProcess, pid=st.just(4711), start=st.just(""), in_kernel=st.booleans())


@given(FACTS, PROCESSES, BATCHES)
def test_a_trial_in_a_kernel_ends_once_and_says_why(facts: Facts, process: KernelProcess, batches: int) -> None:
    decision = decide_kernel(facts, process, batches)
    reason = facts.exit.reason if facts.exit is not None else None
    asked = facts.asked.killed or facts.asked.paused
    match decision:
        case Complete():
            assert reason is ExitReason.COMPLETED
            assert facts.exit is not None
            all_done = facts.exit.early or facts.trial.length is None or facts.exit.batch >= facts.trial.length
            assert facts.exit.last_row is None or (all_done and facts.storage.last_row >= facts.exit.last_row)
        case Cancel(None):
            assert asked
        case Cancel(error):
            assert not asked
            assert reason in (None, ExitReason.STOPPED)
            assert error is not None
            length = facts.trial.length
            assert error.type == STOPPED
            assert error.message.endswith(f"after batch {batches} of {length}." if length else f"batch {batches}.")
            who = "interrupted (by Ctrl-C" if reason else facts.process.interrupted
            who = who or ("its kernel was restarted or ended" if process.in_kernel else "its process (4711) ended")
            assert error.message.startswith(who)
        case Refuse(error):
            assert reason is ExitReason.INVALID_HYPERPARAMETERS
            assert not asked
        case Fail(error):
            assert not asked
            assert reason not in (None, ExitReason.STOPPED)
            told = facts.exit.error if facts.exit is not None else None
            assert error == told or error.type == "IncompleteRun"
        case other:
            raise AssertionError(f"it would be run again: {other}")
