"""What becomes of a trial: the rules alone."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from det_native.master.flow.decide import (
    Asked,
    Cancel,
    Complete,
    Decision,
    Facts,
    Fail,
    ProcessEnd,
    Refuse,
    Restart,
    Storage,
    Suspend,
    TrialFacts,
    decide,
    fingerprint_of,
)
from det_native.schema.rest import ExitReport, UserErrorInfo
from det_native.schema.states import ExitReason


def error(message: str = "boom", batch: int = 3) -> UserErrorInfo:
    return UserErrorInfo(type="ValueError", message=message, traceback="...", batch=batch)


def facts(reason: ExitReason | None, **changes: object) -> Facts:
    told = error() if reason in (ExitReason.USER_ERROR, ExitReason.HARNESS_ERROR) else None
    exit_report = ExitReport(seq=1, reason=reason, batch=3, error=told) if reason else None
    end = ProcessEnd("killed by signal 9 (SIGKILL)")
    return changed(Facts(exit_report, end, Asked(), TrialFacts(), Storage()), **changes)


def changed(known: Facts, **changes: object) -> Facts:
    """Return facts with some of them others, whatever part they stand in."""
    for part in fields(Facts)[1:]:
        group = getattr(known, part.name)
        own = {name: value for name, value in changes.items() if hasattr(group, name)}
        known = replace(known, **{part.name: replace(group, **own)})
    return known


def with_error(known: Facts, told: UserErrorInfo) -> Facts:
    assert known.exit is not None
    return replace(known, exit=known.exit.model_copy(update={"error": told}))


def test_an_error_of_the_user_is_tried_once_more_and_not_again_at_the_same_batch() -> None:
    first = decide(facts(ExitReason.USER_ERROR))
    assert isinstance(first, Restart)
    assert first.restarts == 1
    second = decide(facts(ExitReason.USER_ERROR, restarts=1, fingerprint=first.fingerprint))
    assert isinstance(second, Fail)
    assert second.error == error()


def test_so_is_an_error_of_the_worker_unless_the_next_run_takes_another_checkpoint() -> None:
    first = decide(facts(ExitReason.HARNESS_ERROR))
    assert isinstance(first, Restart)
    assert isinstance(decide(facts(ExitReason.HARNESS_ERROR, restarts=1, fingerprint=first.fingerprint)), Fail)
    corrupt = error().model_copy(update={"type": "CheckpointCorruptError"})
    known = decide(with_error(facts(ExitReason.HARNESS_ERROR), corrupt))
    assert isinstance(known, Restart)
    again = facts(ExitReason.HARNESS_ERROR, restarts=1, fingerprint=known.fingerprint)
    assert isinstance(decide(with_error(again, corrupt)), Restart)


@pytest.mark.parametrize("name", ["TrialDefinitionError", "InvalidDataError", "DivergedError"])
def test_what_no_other_run_can_mend_is_not_tried_again(name: str) -> None:
    lasting = error().model_copy(update={"type": name})
    for reason in (ExitReason.USER_ERROR, ExitReason.HARNESS_ERROR):
        assert isinstance(decide(with_error(facts(reason), lasting)), Fail)


def test_an_error_of_the_user_before_anything_was_trained_costs_no_restart() -> None:
    known = with_error(facts(ExitReason.USER_ERROR, trained=False), error(batch=1))
    decision = decide(known)
    assert isinstance(decision, Fail)
    assert decision.reason == "The user's code failed before a batch was done; the trial is not tried again."
    assert isinstance(decide(changed(known, trained=True)), Restart), "what was trained is not given up at once"
    assert known.exit is not None
    of_the_worker = replace(known, exit=known.exit.model_copy(update={"reason": ExitReason.HARNESS_ERROR}))
    assert isinstance(decide(of_the_worker), Restart)


def test_an_error_elsewhere_is_another_error() -> None:
    assert fingerprint_of(error(batch=3)) != fingerprint_of(error(batch=4))
    assert fingerprint_of(error("at <object at 0x7f12>")) == fingerprint_of(error("at <object at 0x99ff>"))


def test_a_worker_that_died_keeps_what_is_known_of_an_earlier_error() -> None:
    decision = decide(facts(None, fingerprint="known"))
    assert isinstance(decision, Restart)
    assert decision.fingerprint == "known"
    assert "killed by signal 9" in decision.reason
    assert decision.error.type == "WorkerDied"


def test_a_kill_cancels_whatever_the_worker_said_but_done_is_done() -> None:
    assert decide(facts(ExitReason.USER_ERROR, killed=True)) == Cancel()
    assert decide(facts(None, killed=True)) == Cancel()
    assert decide(facts(ExitReason.STOPPED, killed=True)) == Cancel()
    assert decide(facts(ExitReason.COMPLETED, killed=True)) == Complete()
    assert isinstance(decide(facts(ExitReason.INVALID_HYPERPARAMETERS)), Refuse)


def test_a_stop_that_nobody_asked_for_is_no_end() -> None:
    decision = decide(facts(ExitReason.STOPPED))
    assert isinstance(decision, Restart)
    assert decision.restarts == 1
    assert "SIGTERM" in decision.reason
    assert isinstance(decide(facts(ExitReason.STOPPED, restarts=5)), Fail)


def test_a_run_that_was_asked_to_pause_costs_no_restart_however_it_ended() -> None:
    assert decide(facts(ExitReason.STOPPED, paused=True)) == Suspend("Paused after batch 3.")
    vanished = decide(facts(None, paused=True, restarts=5))
    assert isinstance(vanished, Suspend)
    assert "the one before counts" in vanished.reason


def test_a_worker_that_ended_with_the_master_before_it_had_its_job_costs_no_restart() -> None:
    assert isinstance(decide(facts(None, begun=False)), Suspend)
    assert isinstance(decide(facts(None, begun=True)), Restart)
    assert isinstance(decide(facts(None, begun=False, killed=True)), Cancel)


def test_a_pause_hides_neither_an_end_nor_an_error_nor_a_kill() -> None:
    assert decide(facts(ExitReason.COMPLETED, paused=True)) == Complete()
    assert decide(facts(ExitReason.STOPPED, paused=True, killed=True)) == Cancel()
    assert isinstance(decide(facts(ExitReason.USER_ERROR, paused=True)), Restart)
    assert isinstance(decide(facts(ExitReason.USER_ERROR, paused=True, restarts=5)), Fail)
    assert isinstance(decide(facts(ExitReason.INVALID_HYPERPARAMETERS, paused=True)), Refuse)


@given(
    st.lists(st.sampled_from([None, ExitReason.HARNESS_ERROR, ExitReason.USER_ERROR]), min_size=40, max_size=60),
    st.integers(0, 6),
)
def test_no_trial_is_restarted_more_often_than_allowed(ends: list[ExitReason | None], max_restarts: int) -> None:
    restarts, fingerprint = 0, None
    decision: Decision | None = None
    for reason in ends:
        decision = decide(facts(reason, restarts=restarts, max_restarts=max_restarts, fingerprint=fingerprint))
        if not isinstance(decision, Restart):
            break
        assert decision.restarts == restarts + 1
        restarts, fingerprint = decision.restarts, decision.fingerprint
    assert isinstance(decision, Fail)
    assert restarts <= max_restarts


def test_a_process_that_leaves_by_itself_is_told_so() -> None:
    decision = decide(facts(None, detail="exit code 0 (peak memory 289 MiB)"))
    assert isinstance(decision, Restart)
    assert "os._exit()" in decision.error.message


def completed(batch: int, **told: object) -> Facts:
    report = ExitReport(seq=1, reason=ExitReason.COMPLETED, batch=batch, **told)
    return replace(facts(ExitReason.COMPLETED, length=200), exit=report)


def test_a_run_that_did_less_than_was_asked_for_is_not_complete() -> None:
    decision = decide(completed(140, last_row=140))
    assert isinstance(decision, Restart)
    assert decision.error.type == "IncompleteRun"
    assert "after batch 140 of 200" in decision.reason
    assert decide(changed(completed(140, last_row=140, early=True), last_row=140)) == Complete()
    assert decide(changed(completed(200, last_row=200), last_row=200)) == Complete()


def test_a_run_whose_metrics_are_not_all_here_is_not_complete() -> None:
    known = changed(completed(200, last_row=200), last_row=140)
    decision = decide(known)
    assert isinstance(decision, Restart)
    assert "up to batch 140 only, of 200" in decision.error.message
    without_any = decide(changed(known, last_row=-1))
    assert isinstance(without_any, Restart)
    assert "up to batch 0 only, of 200" in without_any.error.message
    assert isinstance(decide(changed(known, restarts=5)), Fail)
    assert decide(changed(known, killed=True)) == Cancel()
    assert decide(completed(200, last_row=-1)) == Complete()  # a trial need not report training metrics


def test_a_run_of_which_reports_are_lost_is_not_complete() -> None:
    report = ExitReport(seq=9, reason=ExitReason.COMPLETED, batch=200, last_row=-1)
    known = replace(facts(ExitReason.COMPLETED, length=200), exit=report)
    for stored, lost in ((9, False), (8, False), (7, True), (0, True)):  # its exit report is in a file of its own
        decision = decide(changed(known, last_seq=stored))
        assert isinstance(decision, Restart) == lost
        if isinstance(decision, Restart):
            assert decision.error.message.endswith(
                f"but of its 9 reports {stored} are here. The folder of the run has lost some."
            )


def test_lost_files_of_the_bundle_are_no_restart_and_no_end() -> None:
    lost = error("There is no blob").model_copy(update={"type": "StorageError"})
    for restarts in (0, 5):
        ended = with_error(facts(ExitReason.HARNESS_ERROR, restarts=restarts, fingerprint="x"), lost)
        decision = decide(changed(ended, lost_files="waits for files"))
        assert isinstance(decision, Suspend)
        assert decision.for_files == "waits for files"
        assert isinstance(decide(changed(ended, lost_files="waits for files", killed=True)), Cancel)


def test_a_full_disk_is_no_restart_and_no_end() -> None:
    full = error("No space left on device").model_copy(update={"type": "DiskFullError"})
    for restarts in (0, 5):
        known = decide(with_error(facts(ExitReason.HARNESS_ERROR, restarts=restarts), full))
        assert isinstance(known, Suspend)
        assert known.for_room
        assert known == decide(with_error(facts(ExitReason.HARNESS_ERROR, restarts=restarts, fingerprint="x"), full))
    unstarted = decide(facts(None, full=True))
    assert isinstance(unstarted, Suspend)
    assert unstarted.for_room
    paused = decide(with_error(facts(ExitReason.HARNESS_ERROR, paused=True), full))
    assert isinstance(paused, Suspend)
    assert not paused.for_room
    assert "the one before counts" in paused.reason
    assert isinstance(decide(with_error(facts(ExitReason.HARNESS_ERROR, killed=True), full)), Cancel)


def test_a_worker_killed_for_memory_says_what_it_had() -> None:
    ended = decide(facts(None, memory="812 MiB", batch_size=64, max_restarts=0))
    assert isinstance(ended, Fail)
    assert ended.error.type == "OutOfMemory"
    assert "it had 812 MiB at its peak, with a batch size of 64." in ended.error.message
    unknown = decide(facts(None, memory="812 MiB", max_restarts=0))
    assert isinstance(unknown, Fail)
    assert "812 MiB at its peak. A smaller batch" in unknown.error.message


@pytest.mark.parametrize("reason", [ExitReason.HARNESS_ERROR, None])
def test_a_disk_that_failed_and_is_back_costs_no_restart(reason: ExitReason | None) -> None:
    known = facts(reason, max_restarts=0, disk_failed=True)
    if reason is not None:
        known = with_error(known, UserErrorInfo(type="DiskFailedError", message="read-only", traceback="", batch=3))
        assert isinstance(decide(changed(known, disk_failed=False)), Fail), "that of the checkpoints, say"
    decision = decide(known)
    assert isinstance(decision, Suspend)
    assert "no restart is counted" in decision.reason
    assert isinstance(decide(facts(ExitReason.USER_ERROR, max_restarts=0, disk_failed=True)), Fail)


@pytest.mark.parametrize("reason", [None, ExitReason.STOPPED, ExitReason.PEER_FAILED])
def test_what_interrupts_a_run_from_outside_is_no_restart(reason: ExitReason | None) -> None:
    why = "the machine b is being drained"
    decision = decide(facts(reason, max_restarts=0, interrupted=why))
    assert isinstance(decision, Suspend)
    assert f"{why}. The trial goes on elsewhere; no restart is counted." in decision.reason
    assert isinstance(decide(facts(reason, max_restarts=0)), Fail)


@pytest.mark.parametrize("reason", [ExitReason.USER_ERROR, ExitReason.HARNESS_ERROR])
def test_an_error_of_its_own_counts_all_the_same(reason: ExitReason) -> None:
    assert isinstance(decide(facts(reason, interrupted="the machine b is being drained")), Restart)


def test_a_trial_that_hung_is_run_again_unless_the_watchdog_is_to_end_it() -> None:
    hung = facts(None, hung="Nothing came from it for 600 s.")
    decision = decide(hung)
    assert isinstance(decision, Restart)
    assert (decision.error.type, decision.error.message) == ("TrialHung", "Nothing came from it for 600 s.")
    ended = decide(changed(hung, may_restart=False))
    assert isinstance(ended, Fail)
    assert "watchdog.action: end" in ended.reason
    assert isinstance(decide(facts(None, may_restart=False)), Restart), "it did not hang"


@pytest.mark.parametrize(
    "reason", [None, ExitReason.STOPPED, ExitReason.USER_ERROR, ExitReason.INVALID_HYPERPARAMETERS]
)
def test_a_trial_that_its_search_ended_is_complete_however_its_run_ended(reason: ExitReason | None) -> None:
    assert decide(facts(reason, stopped_early=True, restarts=5)) == Complete()
    assert decide(facts(reason, stopped_early=True, killed=True)) == Cancel()


def test_the_last_restart_is_one_too() -> None:
    decision = decide(facts(None, restarts=4))
    assert isinstance(decision, Restart)
    assert decision.restarts == 5
    assert decision.reason == (
        "The worker process ended without a report: killed by signal 9 (SIGKILL). Restart 5 of at most 5."
    )
    ended = decide(facts(None, restarts=5))
    assert isinstance(ended, Fail)
    assert ended.reason == "The trial has no restarts left (max_restarts: 5)."


@pytest.mark.parametrize(
    ("message", "changes", "reason"),
    [
        ("boom", {}, "ValueError: boom. Restart 1 of at most 5."),
        ("boom!\nmore", {}, "ValueError: boom! Restart 1 of at most 5."),
        ("boom.", {"rank": 1}, "[rank 1] ValueError: boom. Restart 1 of at most 5."),
        ("", {}, "ValueError. Restart 1 of at most 5."),
    ],
)
def test_the_log_says_the_first_line_of_the_error_and_whose_it_is(
    message: str, changes: dict[str, object], reason: str
) -> None:
    failed = with_error(facts(ExitReason.USER_ERROR), error(message).model_copy(update=changes))
    decision = decide(failed)
    assert isinstance(decision, Restart)
    assert decision.reason == reason


def test_what_ended_a_run_from_outside_is_told_with_its_batch_where_it_saved_that() -> None:
    why = "the machine b is being drained"
    assert decide(facts(ExitReason.STOPPED, interrupted=why)) == Suspend(
        f"The run ended after batch 3: {why}. The trial goes on elsewhere; no restart is counted."
    )
    assert decide(facts(None, interrupted=why)) == Suspend(
        f"The run ended: {why}. The trial goes on elsewhere; no restart is counted."
    )
