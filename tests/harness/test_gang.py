"""Processes of one trial: which one reports, and which one failed first."""

from __future__ import annotations

import time
from multiprocessing import get_context
from multiprocessing.queues import Queue
from pathlib import Path

import pytest
from det_harness.ranks.gang import Failures, SilentReporter, ranks_of, run_folder

from det_native.errors import RankLostError, UnreachableError
from det_native.schema.job import Gang
from det_native.schema.ranks import SHARED_WITHIN, is_shared
from det_native.schema.rest import UserErrorInfo
from det_native.schema.states import ExitReason


def gang(folder: Path, rank: int, size: int = 2) -> Gang:
    return Gang(rank=rank, size=size, local_rank=rank, local_size=size, rendezvous=str(folder / "rendezvous"))


def test_the_only_process_is_always_the_one_that_failed(tmp_path: Path) -> None:
    failures = Failures(None)
    assert failures.is_first(RankLostError("whatever"))
    error = UserErrorInfo(type="ValueError", message="no", traceback="")
    assert failures.name(error) == error
    assert list(tmp_path.iterdir()) == []


def test_a_failure_is_claimed_when_it_happens_and_once(tmp_path: Path) -> None:
    first, second = (Failures(gang(tmp_path, rank)) for rank in (1, 0))
    with pytest.raises(ValueError, match="mine"), first.noted():
        raise ValueError("mine")
    with pytest.raises(ValueError, match="too late"), second.noted():
        raise ValueError("too late")
    assert first.is_first(ValueError("mine"))
    assert not second.is_first(ValueError("too late"))
    assert first.name(UserErrorInfo(type="ValueError", message="mine", traceback="")).rank == 1


def test_on_several_machines_a_failure_is_on_its_way_before_anybody_notices_it(tmp_path: Path) -> None:
    began = time.monotonic()
    apart = gang(tmp_path, 1).model_copy(update={"cross_rank": 1, "cross_size": 2})
    assert Failures(apart).is_first(ValueError("mine"))
    assert time.monotonic() - began >= SHARED_WITHIN
    assert (tmp_path / "rendezvous.failed").read_text() == "1\n"
    assert is_shared("rendezvous.failed")


def test_who_does_not_reach_another_machine_has_failed_by_itself(tmp_path: Path) -> None:
    assert Failures(gang(tmp_path, 1)).is_first(UnreachableError("a firewall"))


def test_who_lost_a_peer_claims_nothing_even_if_the_users_code_made_another_error_of_it(tmp_path: Path) -> None:
    def wrapped() -> None:
        try:
            raise RankLostError("rank 1 is gone")
        except RankLostError as lost:
            raise RuntimeError("my training broke") from lost

    def in_cleaning_up() -> None:
        try:
            raise RankLostError("rank 1 is gone")
        finally:
            raise KeyError("x")

    for fails in (wrapped, in_cleaning_up):
        failures = Failures(gang(tmp_path, 0))
        with pytest.raises((RuntimeError, KeyError)) as caught, failures.noted():
            fails()
        assert not failures.is_first(caught.value)
    assert Failures(gang(tmp_path, 1)).is_first(ValueError("it was me"))


def _fail(place: Gang, told: Queue[bool]) -> None:
    told.put(Failures(place).is_first(ValueError()))


def test_of_processes_that_fail_at_once_one_is_the_first(tmp_path: Path) -> None:
    context = get_context("fork")
    told: Queue[bool] = context.Queue()
    processes = [context.Process(target=_fail, args=(gang(tmp_path, rank, 4), told)) for rank in range(4)]
    for process in processes:
        process.start()
    found = [told.get(timeout=30) for _ in processes]
    for process in processes:
        process.join(30)
    assert sorted(found) == [False, False, False, True]


def test_places_and_folders(tmp_path: Path) -> None:
    place = Gang(rank=3, size=4, local_rank=1, local_size=2, cross_rank=1, cross_size=2, rendezvous="x")
    ranks = ranks_of(place)
    assert (ranks.rank, ranks.size, ranks.local_rank, ranks.local_size, ranks.agents) == (3, 4, 1, 2, 2)
    assert ranks_of(None).size == 1
    assert run_folder(tmp_path, None) == tmp_path
    assert run_folder(tmp_path, gang(tmp_path, 0)) == tmp_path
    assert run_folder(tmp_path / "rank-1", gang(tmp_path, 1)) == tmp_path


def test_a_silent_reporter_leaves_its_last_word_only() -> None:
    reporter = SilentReporter()
    reporter.training([1], {"loss": [0.5]})
    reporter.validation(1, {"loss": 0.5})
    assert not reporter.stop_requested
    assert reporter.best_metric() is None
    assert reporter.exit(ExitReason.STOPPED, 4).batch == 4
    assert reporter.close()
