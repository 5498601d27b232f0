"""Ranks in a ring: sums, turns of several threads, and what ends a wait that would have no end."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from det_harness.ranks.meeting import Meeting
from det_harness.ranks.ring import Ring
from det_harness.ranks.ring_communicator import RingCommunicator
from det_harness.ranks.ring_meeting import joined_in_ring

from det_native.errors import RankLostError, TrialDefinitionError
from det_native.schema.job import Gang

Call = Callable[[Ring], Any]


def rings(size: int, long_seconds: float = 60.0) -> list[Ring]:
    """Return connected ranks."""
    pairs = [socket.socketpair() for _ in range(size)]  # from each rank to the next
    return [Ring(rank, size, pairs[rank][0], pairs[rank - 1][1], long_seconds) for rank in range(size)]


def at_once(calls: list[Callable[[], Any]]) -> list[Any]:
    """Return what calls return, or raise, that are made at the same time."""
    with ThreadPoolExecutor(len(calls)) as pool:
        made = [pool.submit(call) for call in calls]
        return [each.exception() or each.result() for each in made]


def on_all(made: list[Ring], call: Call) -> list[Any]:
    """Return what each rank finds."""
    return at_once([lambda ring=ring: call(ring) for ring in made])  # type: ignore[misc]


@pytest.mark.parametrize("size", [2, 3, 5])
@pytest.mark.parametrize(("length", "kind"), [(1, "float32"), (4, "float32"), (1_000_003, "float64"), (7, "float16")])
def test_a_sum_is_that_of_all_ranks_with_the_same_bits_on_each(size: int, length: int, kind: str) -> None:
    given = [np.random.default_rng(rank).normal(size=length).astype(kind) for rank in range(size)]

    def add_up(ring: Ring) -> Any:
        own = given[ring.rank].copy()
        ring.add_up("gradients", own)
        return own

    found = on_all(rings(size), add_up)
    np.testing.assert_allclose(found[0], np.sum(given, axis=0), rtol=1e-2 if kind == "float16" else 1e-4, atol=1e-2)
    assert all(each.tobytes() == found[0].tobytes() for each in found)


@pytest.mark.parametrize("length", [0, 5, 9_000_000])
def test_what_the_first_rank_broadcasts_comes_to_all(length: int) -> None:
    content = bytes(range(256)) * (length // 256) + bytes(length % 256)
    found = on_all(rings(3), lambda ring: ring.broadcast("weights", content if ring.rank == 0 else b""))
    assert [bytes(each) for each in found] == [content] * 3


def test_threads_that_come_in_another_order_on_each_rank_wait_for_their_turn() -> None:
    """As a graph of TensorFlow may run what two optimizers exchange."""
    made = rings(3)

    def call(ring: Ring, name: str, after: threading.Event | None, before: threading.Event | None) -> float:
        if after is not None:
            assert after.wait(60)
        if before is not None:
            before.set()
        own = np.full(3, float(len(name) + ring.rank))
        ring.add_up(name, own)
        return float(own[0])

    events = [threading.Event() for _ in made]
    calls = []
    for ring, event in zip(made, events, strict=True):
        order = ("a", "bbb") if ring.rank != 1 else ("bbb", "a")
        calls.append(lambda ring=ring, event=event, order=order: call(ring, order[0], None, event))
        calls.append(lambda ring=ring, event=event, order=order: call(ring, order[1], event, None))
    found = at_once(calls)
    assert [sorted(found[2 * rank : 2 * rank + 2]) for rank in range(3)] == [[6.0, 12.0]] * 3


def test_ranks_in_different_operations_are_told_which_instead_of_waiting_for_ever() -> None:
    made = rings(2, long_seconds=0.05)
    first, second = at_once(
        [lambda: made[0].add_up("gradients of step 3", np.zeros(4)), lambda: made[1].all_gather("barrier", b"")]
    )
    assert isinstance(first, OSError)  # the connection, which the other rank has closed
    assert isinstance(second, TrialDefinitionError)
    assert "deadlock: slot 1 waits in barrier, and slot 0 in gradients of step 3." in str(second)


def test_ranks_with_different_models_are_told_so() -> None:
    found = on_all(rings(2), lambda ring: ring.add_up("gradients", np.zeros(4 + ring.rank)))
    assert isinstance(found[1], TrialDefinitionError)
    assert "slot 1 has 40 bytes and slot 0 32" in str(found[1])


def test_a_rank_that_goes_ends_the_wait_of_all() -> None:
    made = rings(3)

    def call(ring: Ring) -> Any:
        if ring.rank == 2:
            return ring.close()
        return ring.all_gather("report", b"x")

    assert [isinstance(each, OSError) for each in on_all(made, call)] == [True, True, False]


def _gang(folder: Path, rank: int) -> Gang:
    return Gang(rank=rank, size=2, local_rank=rank, local_size=2, rendezvous=str(folder / "meeting"))


def test_a_program_without_the_secret_does_not_get_in(tmp_path: Path) -> None:
    """A stranger is the first that connects, and says something."""

    def first() -> list[Any]:
        with joined_in_ring(_gang(tmp_path, 0), deadline=60) as communicator:
            return communicator.all_gather_object("first")

    def second() -> list[Any]:
        place = Meeting(_gang(tmp_path, 1), 60).share(None)
        with socket.create_connection(place) as stranger:
            stranger.recv(16)
            stranger.sendall(struct.pack("<II16s32s", 1, 0, b"", b""))
            assert stranger.recv(1) == b""  # shown the door
        with joined_in_ring(_gang(tmp_path, 1), deadline=60) as communicator:
            return communicator.all_gather_object("second")

    assert at_once([first, second]) == [["first", "second"]] * 2


def test_a_rank_that_does_not_come_is_missed(tmp_path: Path) -> None:
    def join() -> None:
        with joined_in_ring(_gang(tmp_path, 0), deadline=0.05):
            pass

    with pytest.raises(RankLostError, match="Not all 2 processes of the trial were there in time"):
        join()


def test_a_lost_rank_is_named_in_words() -> None:
    made = rings(2)
    communicator = RingCommunicator(lambda number: made[0], b"secret")
    made[1].close()
    with pytest.raises(RankLostError, match="Another process of this trial has ended or does not answer"):
        communicator.barrier()
