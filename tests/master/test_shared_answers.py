"""Who asks the same at the same time gets the same answer, and never one that is older than the question."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest
from master_parts import Master, Worker

from det_native.errors import NotFoundError
from det_native.master.api.shared import SharedAnswers


async def _until(true: threading.Event) -> None:
    assert await asyncio.to_thread(true.wait, 30)


def test_those_who_come_while_one_is_worked_out_share_the_next() -> None:
    begun: list[int] = []
    going, go_on = threading.Event(), threading.Event()

    def work_out() -> bytes:
        begun.append(len(begun))
        going.set()
        assert go_on.wait(30)
        return str(begun[-1]).encode()

    async def ask_all() -> list[bytes]:
        shared = SharedAnswers()
        first = [asyncio.create_task(shared.answer("a", work_out)) for _ in range(3)]
        await _until(going)
        later = [asyncio.create_task(shared.answer("a", work_out)) for _ in range(5)]
        await asyncio.sleep(0)
        later[0].cancel()
        go_on.set()
        found = await asyncio.gather(*first, *later[1:])
        assert (await shared.answer("a", work_out)).body == b"2"
        return [bytes(answer.body) for answer in found]

    assert asyncio.run(ask_all()) == [b"0"] * 3 + [b"1"] * 4
    assert begun == [0, 1, 2]


def test_an_error_is_everybodys_and_the_next_question_is_answered() -> None:
    def fail() -> bytes:
        raise NotFoundError("no")

    async def ask() -> None:
        shared = SharedAnswers()
        found = await asyncio.gather(*(shared.answer(1, fail) for _ in range(3)), return_exceptions=True)
        assert [type(one) for one in found] == [NotFoundError] * 3
        assert (await shared.answer(1, lambda: b"{}")).body == b"{}"
        assert (await shared.answer(2, lambda: b"[]")).body == b"[]"

    asyncio.run(ask())


@pytest.mark.slow
def test_of_many_readers_each_sees_what_was_reported_before_it_asked(master: Master) -> None:
    master.create()
    (job,) = master.world.wait_for_jobs(1)
    worker = Worker(master, job)
    worker.start()
    worker.train(1, 1, loss=[0.0])
    reported, done = [1], threading.Event()
    url, headers = str(master.client.base_url), dict(master.client.headers)

    def read(_: int) -> int:
        asked = 0
        with httpx.Client(base_url=url, headers=headers, timeout=60, verify=False) as client:
            while not done.is_set():
                before = reported[0]
                for path in ("/api/v1/trials/1/series?name=loss", "/api/v1/trials/1/curves"):
                    answer = client.get(path)
                    assert answer.status_code == 200
                    found = answer.json()
                    last = (found if isinstance(found, dict) else found[0])["batch"][-1]
                    assert last >= before, "older than what was reported before the question"
                asked += 1
        return asked

    with ThreadPoolExecutor(8) as pool:
        readers = [pool.submit(read, number) for number in range(8)]
        try:
            for batch in range(2, 60):
                worker.train(batch, batch, loss=[0.5])
                reported[0] = batch
        finally:
            done.set()
        assert all(reader.result() > 0 for reader in readers)
