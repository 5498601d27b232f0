"""JupyterLab's side of a master behind a bad network: the panel says so, comes back, and misses no event."""

from __future__ import annotations

import asyncio
import os
import random
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from fault_proxy import FaultProxy, Network
from jupyter_parts import PATIENCE, Jupyter, MasterProcess

from det_native.schema.sockets import path_of, url_of

pytestmark = [pytest.mark.slow, pytest.mark.long]

SEED = int(os.environ.get("DET_FAULT_SEED", "36"))


@pytest.fixture
def network(shared_master: MasterProcess, monkeypatch: pytest.MonkeyPatch) -> Iterator[FaultProxy]:
    """What is between the Jupyter server and the master that the environment names."""
    folder = Path(tempfile.mkdtemp(dir="/tmp"))  # the path of a socket is short
    with FaultProxy(path_of(shared_master.runtime.url), folder / "proxy.sock") as between:
        monkeypatch.setenv("DET_MASTER", url_of(folder / "proxy.sock"))
        monkeypatch.setenv("DET_TOKEN", shared_master.token)
        yield between
    shutil.rmtree(folder)


@pytest.mark.parametrize("extension_settings", [{"status_seconds": 1.0}], indirect=True)
async def test_it_says_what_is_out_of_reach_and_comes_back(jupyter: Jupyter, network: FaultProxy) -> None:
    await jupyter.until(lambda found: found["state"] == "running")
    for fault in (Network.REFUSING, Network.HELD, Network.SILENT, Network.DEAF):
        with network.being(fault):
            status = await jupyter.until(lambda found: found["state"] != "running")
        assert status["state"] == "unreachable", fault
        assert f"{network.place}" in status["message"], fault
        assert status["remedy"], fault
        assert (await jupyter.until(lambda found: found["state"] == "running"))["master"], fault
        assert (await jupyter.get("master/experiments")).status_code == 200


async def test_events_over_connections_that_break_off_at_drawn_bytes(
    jupyter: Jupyter, shared_master: MasterProcess, network: FaultProxy
) -> None:
    numbers = [shared_master.experiment() for _ in range(5)]
    async with jupyter.events(last=0) as events:
        whole = [event["id"] for event in await events.take(4 * len(numbers))]
    seen: list[int] = []
    resets = network.resets
    with network.lossy(random.Random(SEED), 300, 6_000):
        async with asyncio.timeout(PATIENCE):
            while len(seen) < len(whole):
                try:
                    async with jupyter.events(last=seen[-1] if seen else 0) as events:
                        while len(seen) < len(whole):
                            seen += [event["id"] for event in await events.take(1)]
                except (httpx.TransportError, StopAsyncIteration):
                    continue
    assert network.resets > resets, f"seed {SEED}"
    assert seen == whole, f"no gap, no repeat (seed {SEED})"
