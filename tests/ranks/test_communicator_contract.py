"""What every communicator does, with real processes: each implementation, without the framework of another."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from det_harness.ranks import signed
from det_harness.ranks.brought_files import PIECE
from det_harness.ranks.communicator import OneProcess
from forked_programs import ForkedPrograms
from two_machines import two_machines

from det_native.errors import RankLostError

pytestmark = pytest.mark.slow

PROGRAM = Path(__file__).with_name("communicator_program.py")


IMPLEMENTATIONS = ["torch", "ring"]
IMPORTED = {"torch": ["torch"], "ring": ["tensorflow"]}

Ranks = Callable[..., list[dict[str, Any]]]


@pytest.fixture(params=IMPLEMENTATIONS)
def implementation(request: pytest.FixtureRequest) -> str:
    """The implementation."""
    return str(request.param)


@pytest.fixture
def ranks(
    tmp_path: Path, implementation: str, torch_programs: ForkedPrograms, tensorflow_programs: ForkedPrograms
) -> Ranks:
    """Run the program in processes; returns what each has found."""

    def run(what: str, *, size: int = 2, codes: list[int] | None = None) -> list[dict[str, Any]]:
        command = [str(PROGRAM), implementation, str(tmp_path)]
        programs = tensorflow_programs if implementation == "ring" else torch_programs
        ended, outputs = programs.run(tmp_path, [[*command, str(rank), str(size), what] for rank in range(size)], {})
        assert ended == (codes or [0] * size), "\n".join(outputs)
        paths = [tmp_path / f"found.{rank}.json" for rank in range(size)]
        return [json.loads(path.read_text()) for path in paths if path.exists()]

    return run


@pytest.mark.long
def test_every_rank_has_the_same_answers(ranks: Ranks, implementation: str) -> None:
    found = ranks("verbs", size=3)
    assert [one.pop("place") for one in found] == [[rank, 3] for rank in range(3)]
    assert [one.pop("imported") for one in found] == [IMPORTED[implementation]] * 3
    assert found[0] == found[1] == found[2]
    assert found[0] == {
        "gathered": [0, 1, 2],
        "lengths": [0, 100_000, 200_000],
        "on the first": [0, 100_000, 200_000],
        "function": 2,
        "nothing": [None] * 3,
        "sent": ["of rank", 0],
        "any": [True, True, False],
        "meanwhile": [0, 1, 2],
        "late answer": [True],
        "many": sum(range(150)),
    }


def test_a_barrier_waits_for_the_last_rank(ranks: Ranks) -> None:
    assert [one["all arrived"] for one in ranks("barrier")] == [True, True]


def test_another_thread_has_a_group_of_its_own(ranks: Ranks) -> None:
    for one in ranks("groups"):
        assert one["own"] == [[-number, -number] for number in range(20)]
        assert one["other"] == [[number, number] for number in range(20)]


@pytest.mark.long
def test_files_come_to_the_first_rank(ranks: Ranks) -> None:
    size = 256 * (PIECE // 100)
    assert size > 2 * PIECE
    found = ranks("files")[0]
    assert (found["sizes"], found["equal"]) == ({"large": size, "inner/empty": 0}, True)


@pytest.mark.long
def test_ranks_on_two_machines_have_the_same_answers(ranks: Ranks, tmp_path: Path) -> None:
    on = (0, 0, 1)
    with two_machines(tmp_path) as both:
        machines = [[both.machines[number].network, both.machines[number].address] for number in on]
        (tmp_path / "machines.json").write_text(json.dumps({"gangs": both.gangs(on), "machines": machines}))
        found = ranks("verbs", size=3)
    assert [one.pop("place") for one in found] == [[rank, 3] for rank in range(3)]
    assert found[0] == found[1] == found[2]
    assert found[0]["lengths"] == [0, 100_000, 200_000]


def test_who_loses_a_rank_says_so_at_once(ranks: Ranks) -> None:
    [left] = ranks("losing", codes=[0, 9])
    assert left["lost"].startswith("Another process of this trial has ended or does not answer")
    assert "\n" not in left["lost"]


def test_one_process_answers_itself() -> None:
    alone = OneProcess()
    alone.barrier()
    assert alone.all_gather_object("a") == ["a"]
    assert alone.gather_object("a") == ["a"]
    assert alone.broadcast_object("a") == "a"
    assert alone.all_reduce_any(True, False)() == [True, False]
    assert alone.new_group() is alone


def test_only_what_a_rank_has_signed_is_unpickled() -> None:
    content = bytes(signed.packed({"a": 1}, b"secret"))
    assert signed.unpacked(content, b"secret") == {"a": 1}
    with pytest.raises(RankLostError, match="not signed by a rank of this trial"):
        signed.unpacked(content, b"other")
