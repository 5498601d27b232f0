"""Every ask is answered once, though bridges come and go."""

from __future__ import annotations

import asyncio

import pytest

from det_native.errors import CheckpointCorruptError, DiskFullError, StorageError
from det_native.master.launch.ray.agent.ask_queue import AskQueue, error_of
from det_native.master.launch.ray.asks.kinds import Missing, Problem, Write


def test_asks_are_given_once_to_a_bridge_and_again_to_the_next() -> None:
    async def scene() -> None:
        queue = AskQueue()
        waiting = [asyncio.create_task(queue.ask(Missing("runs", [str(n)]))) for n in range(3)]
        await asyncio.sleep(0)
        first = await queue.take("one", 2, 1.0)
        assert [ask.number for ask in first] == [1, 2]
        queue.answer([(1, ["a"])])
        assert [ask.number for ask in await queue.take("one", 64, 1.0)] == [3]
        assert await queue.take("one", 64, 0.0) == []
        again = await queue.take("two", 64, 1.0)
        assert [ask.number for ask in again] == [2, 3]
        queue.answer([(2, ["b"]), (3, ["c"]), (1, ["late"]), (99, None)])
        assert await asyncio.gather(*waiting) == [["a"], ["b"], ["c"]]
        assert await queue.take("three", 64, 0.0) == []

    asyncio.run(scene())


def test_a_bridge_that_waits_gets_what_is_asked_and_nothing_once_another_has_come() -> None:
    async def scene() -> None:
        queue = AskQueue()
        taking = asyncio.create_task(queue.take("one", 64, 60.0))
        await asyncio.sleep(0)
        assert queue.attended
        task = asyncio.create_task(queue.ask(Missing("runs", [])))
        assert [ask.number for ask in await taking] == [1]
        taking = asyncio.create_task(queue.take("one", 64, 60.0))
        await asyncio.sleep(0)
        assert [ask.number for ask in await queue.take("two", 64, 60.0)] == [1]
        assert await taking == []
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert await queue.take("three", 64, 0.0) == [], "nobody waits for it any more"

    asyncio.run(scene())


def test_large_pieces_do_not_all_come_at_once() -> None:
    async def scene() -> None:
        queue = AskQueue()
        content = bytes(10 << 20)
        tasks = [asyncio.create_task(queue.ask(Write("runs", "a", 0, content))) for _ in range(3)]
        await asyncio.sleep(0)
        assert len(await queue.take("one", 64, 1.0)) == 1
        assert len(await queue.take("one", 64, 1.0)) == 1
        assert len(await queue.take("one", 64, 1.0)) == 1
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    asyncio.run(scene())


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("DiskFullError", DiskFullError),
        ("CheckpointCorruptError", CheckpointCorruptError),
        ("FrameError", StorageError),
        ("KeyError", StorageError),
    ],
)
def test_a_problem_is_an_error_of_the_same_kind_here(name: str, kind: type[Exception]) -> None:
    error = error_of(Problem("The disk is full.", name))
    assert type(error) is kind
    assert str(error) == "The disk is full."
