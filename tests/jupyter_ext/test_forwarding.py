"""The master through Jupyter: a real master process, its real stream of events, and what must not get through."""

from __future__ import annotations

import asyncio
import logging
from contextlib import AsyncExitStack

import httpx
import psutil
import pytest
from jupyter_parts import PATIENCE, Jupyter, MasterProcess, until

from det_native.schema import routes

pytestmark = pytest.mark.slow

EVENTS_OF_EXPERIMENT = 4  # at least; more, if its trial is faster than its end


async def test_answers_are_the_masters_own(jupyter: Jupyter, master: MasterProcess) -> None:
    number = master.experiment()
    for path, route in (
        ("health", routes.GET_HEALTH),
        ("master", routes.GET_MASTER),
        (f"experiments/{number}", routes.GET_EXPERIMENT),
        (f"experiments/{number}/trials", routes.LIST_TRIALS),
    ):
        answer = await jupyter.get(f"master/{path}")
        assert answer.status_code == 200
        assert answer.headers["Content-Type"].startswith("application/json")
        parameters = {"experiment_id": number} if str(number) in path else {}
        with master.session.stream(route, **parameters) as direct:
            expected, found = direct.json(), answer.json()
        if path == "master":
            assert found.keys() == expected.keys()
            assert found["pid"] == master.runtime.pid
        else:
            assert found == expected


async def test_parameters_and_actions_reach_the_master(jupyter: Jupyter, master: MasterProcess) -> None:
    first, second = master.experiment(), master.experiment()
    newest = (await jupyter.get("master/experiments", params={"limit": 1, "token": jupyter.token})).json()
    assert [found["id"] for found in newest] == [second]
    older = (await jupyter.get("master/experiments", params={"limit": 1, "before": second})).json()
    assert [found["id"] for found in older] == [first]
    ended = await jupyter.post(f"master/experiments/{second}/kill")
    assert ended.status_code == 200
    assert ended.json()["state"] == "CANCELED"


async def test_refusals_pass_through_with_their_words(jupyter: Jupyter, master: MasterProcess) -> None:
    for path, status in (("experiments/999999", 404), ("experiments?limit=0", 422), ("trials/999999/logs", 404)):
        answer = await jupyter.get(f"master/{path}")
        assert answer.status_code == status
        assert answer.json()["error"]


async def test_what_is_not_for_a_user_interface_is_not_passed_on(jupyter: Jupyter, master: MasterProcess) -> None:
    for method, path in (
        ("POST", "master/shutdown"),
        ("GET", "openapi.json"),
        ("GET", "bundles/ab"),
        ("POST", "experiments"),
        ("GET", "checkpoints/a/files/%2e%2e/%2e%2e/%2e%2e/bundles/ab"),
        ("GET", "experiments/..%2f..%2fhealth"),
    ):
        answer = await jupyter.client.request(method, f"master/{path}")
        assert answer.status_code == 404, path
    assert (await jupyter.status())["state"] == "running"


async def test_an_event_arrives_when_it_happens_and_nothing_else_waits_for_it(
    jupyter: Jupyter, master: MasterProcess
) -> None:
    assert (master.home.path / "python" / "silent").exists()
    last = await newest_event(jupyter, master)
    async with jupyter.events(after=last) as events:
        assert events.answer.status_code == 200
        assert events.answer.headers["Content-Type"].startswith("text/event-stream")
        for _ in range(3):
            number = await asyncio.to_thread(master.experiment)
            await events.take_until_canceled(number)
            assert (await jupyter.status())["state"] == "running"


async def test_a_reader_that_was_cut_off_continues_where_it_was(jupyter: Jupyter, master: MasterProcess) -> None:
    number = master.experiment()
    async with jupyter.events(experiment_id=number) as events:
        whole = [event["id"] for event in await events.take(EVENTS_OF_EXPERIMENT)]
    async with jupyter.events(experiment_id=number, last=whole[1]) as events:
        assert [event["id"] for event in await events.take(EVENTS_OF_EXPERIMENT - 2)] == whole[2:]


async def test_sixty_streams_at_once_hold_up_nobody(jupyter: Jupyter, master: MasterProcess) -> None:
    last = await newest_event(jupyter, master)
    limits = httpx.Limits(max_connections=None)
    async with (
        httpx.AsyncClient(
            base_url=jupyter.client.base_url, headers=jupyter.client.headers, limits=limits, timeout=PATIENCE
        ) as client,
        AsyncExitStack() as stack,
    ):
        many = Jupyter(client, jupyter.base, jupyter.token, jupyter.root)
        streams = await asyncio.gather(*(stack.enter_async_context(many.events(after=last)) for _ in range(60)))
        assert (await jupyter.status())["state"] == "running"
        number = await asyncio.to_thread(master.experiment)
        await asyncio.gather(*(events.take_until_canceled(number) for events in streams))


async def test_a_reader_that_goes_away_closes_the_connection_to_the_master(
    jupyter: Jupyter, master: MasterProcess
) -> None:
    async def streams_at_master() -> int:
        connections = psutil.Process(master.runtime.pid).net_connections("unix")
        return sum(one.laddr == str(master.home.socket) for one in connections)

    await jupyter.status()
    idle = await streams_at_master()
    async with AsyncExitStack() as stack:
        for _ in range(5):
            await stack.enter_async_context(jupyter.events())
        assert await streams_at_master() >= 5
    await until(streams_at_master, lambda count: count <= idle)


async def test_the_master_dies_in_mid_stream_and_comes_back_without_gap_or_repeat_until_it_ends(
    jupyter: Jupyter, master: MasterProcess
) -> None:
    last = await newest_event(jupyter, master)
    await asyncio.to_thread(master.experiment)
    async with jupyter.events(after=last) as events:
        seen = [event["id"] for event in await events.take(EVENTS_OF_EXPERIMENT)]
        master.kill()
        await events.read_to_the_end()
    refused = await jupyter.get("master/events", headers={"Last-Event-ID": str(seen[-1])})
    assert refused.status_code == 503
    assert refused.json() == await jupyter.status()
    assert refused.json()["state"] == "none"

    master.restart()
    assert (await jupyter.status())["state"] == "running"
    await asyncio.to_thread(master.experiment)
    async with jupyter.events(last=seen[-1]) as events:
        seen += [event["id"] for event in await events.take(EVENTS_OF_EXPERIMENT)]
        assert seen == sorted(set(seen))
        assert len(seen) == 2 * EVENTS_OF_EXPERIMENT
        await asyncio.to_thread(master.stop)
        await events.read_to_the_end()


async def test_the_masters_token_gets_nowhere(
    jupyter: Jupyter, master: MasterProcess, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    number = master.experiment()
    told: list[str] = []
    for path in ("status", "master/master", f"master/experiments/{number}", "master/experiments/999999", "master/x"):
        answer = await jupyter.get(path)
        told += [answer.text, str(answer.headers.raw)]
    async with jupyter.events(experiment_id=number) as events:
        told += [str(await events.take(EVENTS_OF_EXPERIMENT)), str(events.answer.headers.raw)]
    assert master.token not in "".join(told)
    assert master.token not in caplog.text
    assert caplog.text


async def test_answers_cannot_become_pages(jupyter: Jupyter, master: MasterProcess) -> None:
    for path in ("status", "master/experiments", "master/nothing"):
        headers = (await jupyter.get(path)).headers
        assert "default-src 'none'" in headers["Content-Security-Policy"]
        assert "sandbox" in headers["Content-Security-Policy"]
        assert headers["X-Content-Type-Options"] == "nosniff"


async def newest_event(jupyter: Jupyter, master: MasterProcess) -> int:
    """Return the id of the newest event."""
    number = await asyncio.to_thread(master.experiment)
    async with jupyter.events(experiment_id=number) as events:
        return int((await events.take(EVENTS_OF_EXPERIMENT))[-1]["id"])
