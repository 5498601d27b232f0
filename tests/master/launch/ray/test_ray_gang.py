"""The ends of the processes of a run: which of them its end is."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from det_native.master.launch.ray.bridge.gang import Gang
from det_native.schema.job import EXIT_RANK_FAILED

CODES = st.sampled_from([0, 1, 3, -9, EXIT_RANK_FAILED, None])


@given(st.lists(CODES, min_size=1, max_size=5), st.randoms(use_true_random=False))
def test_the_first_that_failed_by_itself_is_the_end(codes: list[int | None], random: object) -> None:
    order = list(range(len(codes)))
    random.shuffle(order)  # type: ignore[attr-defined]
    gang = Gang("r1", len(codes), grace=8.0)
    for place, rank in enumerate(order):
        assert gang.exit is None
        assert gang.end(rank, codes[rank], float(place), detail=f"detail {rank}")
        assert not gang.end(rank, 0, float(place)), "an end is noted once"
    ended = gang.exit
    assert ended is not None
    failed = [rank for rank in order if codes[rank] != 0]
    by_itself = [rank for rank in failed if codes[rank] != EXIT_RANK_FAILED]
    first = next(iter(by_itself or failed or [0]))
    assert ended.code == codes[first]
    where = "" if len(codes) == 1 else f"rank {first} of {len(codes)}: "
    assert ended.detail == f"{where}detail {first}"


@given(st.integers(2, 6), st.floats(0, 100), st.floats(0, 20), st.floats(0, 40))
def test_the_others_are_killed_once_after_the_grace(size: int, begin: float, grace: float, later: float) -> None:
    gang = Gang("r1", size, grace=grace)
    gang.end(0, 3, begin, detail="exit code 3")
    gang.end(1, 5, begin, detail="exit code 5")
    due = gang.is_due(begin + later)
    assert due == (size > 2 and begin + later >= begin + grace)
    if due:
        assert not gang.is_due(begin + later + 1)
        for rank in range(2, size):
            gang.end(rank, -9, begin + later, detail="killed")
        assert gang.exit is not None
        assert gang.exit.code == 3


def test_one_that_was_killed_after_another_is_not_what_failed() -> None:
    gang = Gang("r1", 2, ["chief", "worker 0"], grace=0.0)
    gang.end(1, EXIT_RANK_FAILED, 0.0, detail="followed")
    assert gang.is_due(0.0)
    gang.end(0, -9, 1.0, detail="killed by signal 9")
    assert gang.exit is not None
    assert gang.exit.detail == "worker 0: followed"


def test_a_machine_that_is_gone_takes_its_processes() -> None:
    gang = Gang("r1", 3)
    gang.end(0, 0, 0.0)
    gang.lost([0, 1], "the machine b is gone", 1.0)
    assert gang.living == {2}
    assert gang.kill_at is not None
    gang.end(2, EXIT_RANK_FAILED, 2.0)
    assert gang.exit is not None
    assert (gang.exit.code, gang.exit.detail) == (None, "rank 1 of 3: the machine b is gone")


def test_a_process_whose_exit_code_is_unknown_may_have_done_its_work() -> None:
    gang = Gang("r1", 1, failed_without_code=lambda rank: False)
    gang.lost([0], "it ended while the master was away", 0.0)
    assert gang.kill_at is None


def test_a_run_has_begun_if_one_of_its_processes_had() -> None:
    gang = Gang("r1", 2)
    gang.end(0, None, 0.0, begun=False)
    gang.end(1, 0, 0.0)
    assert gang.exit is not None
    assert gang.exit.begun


def test_what_interrupts_a_run_is_said_with_its_end_and_that_it_had_not_begun() -> None:
    gang = Gang("r1", 2)
    gang.interrupted = "the machine b is being drained"
    gang.lost([0, 1], "the machine b is gone", 0.0, begun=False)
    assert gang.exit is not None
    assert gang.exit.interrupted == "the machine b is being drained"
    assert not gang.exit.begun
