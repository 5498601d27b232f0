"""What a notebook keeps of an experiment whose kernel is gone, as the Jupyter server has it drawn."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

import psutil
import pytest
from jupyter_parts import PATIENCE, Jupyter, MasterProcess

from det_native.schema import routes
from det_native.schema.home import Home, read_runtime

pytestmark = pytest.mark.slow

PROGRAM = "det_native.experimental.saved"


def programs() -> list[psutil.Process]:
    """Return the processes that draw for this server."""
    found = []
    for child in psutil.Process().children(recursive=True):
        with suppress(psutil.NoSuchProcess):  # it has just ended; a zombie is one of these, too
            found += [child] if PROGRAM in " ".join(child.cmdline()) else []
    return found


async def test_an_experiment_and_a_trial_are_told_as_the_kernel_would(jupyter: Jupyter, master: MasterProcess) -> None:
    number = master.experiment()
    [trial] = master.session.call(routes.LIST_TRIALS, experiment_id=number) or [None]
    detail = master.session.call(routes.GET_EXPERIMENT, experiment_id=number)
    form = (await jupyter.get(f"saved/experiments/{number}")).json()
    assert form["created"] == detail.created
    assert form["state"] == "CANCELED"
    assert form["data"]["text/plain"].startswith(f"Experiment {number}: ")
    assert "stopped" in form["data"]["text/plain"]
    assert "as of" not in form["data"]["text/plain"]
    assert "<b>Experiment" in form["data"]["text/html"]
    assert trial is not None
    form = (await jupyter.get(f"saved/trials/{trial.id}")).json()
    assert form["data"]["text/plain"].startswith(f"Trial {trial.number} of experiment {number}: ")


async def test_without_a_master_it_is_said_and_none_is_started(jupyter: Jupyter) -> None:
    away = await jupyter.get("saved/experiments/1")
    assert away.status_code == 503
    assert "master" in away.json()["error"]
    assert (await jupyter.get("saved/local/1")).status_code == 404, "of a view of a version before"
    assert read_runtime(Home.default()) is None


async def test_what_the_master_does_not_know_is_said(jupyter: Jupyter, master: MasterProcess) -> None:
    missing = await jupyter.get("saved/experiments/999999")
    assert missing.status_code == 503
    assert "999999" in missing.json()["error"]
    for path in ("saved/experiments/1.5", "saved/bundles/1", "saved/experiments/-1", "saved/experiments/1/2"):
        assert (await jupyter.get(path)).status_code == 404


async def test_only_the_servers_user_is_told(jupyter: Jupyter, master: MasterProcess) -> None:
    number = master.experiment()
    answer = await jupyter.client.get(f"saved/experiments/{number}", headers={"Authorization": "token wrong"})
    assert answer.status_code == 403
    assert master.token not in answer.text


async def test_one_is_drawn_at_a_time_and_none_for_a_client_that_has_gone(
    jupyter: Jupyter, master: MasterProcess
) -> None:
    number = master.experiment()
    seen = 0

    async def ask() -> Any:
        return await jupyter.get(f"saved/experiments/{number}")

    asked = [asyncio.create_task(ask()) for _ in range(2)]
    while not all(task.done() for task in asked):
        seen = max(seen, len(programs()))
        await asyncio.wait(asked, timeout=0.02)
    assert [task.result().status_code for task in asked] == [200, 200]
    assert seen == 1
    gone = asyncio.create_task(ask())
    async with asyncio.timeout(PATIENCE):
        while not programs():
            assert not gone.done()
            await asyncio.wait([gone], timeout=0.02)
        gone.cancel()
        while programs():
            await asyncio.sleep(0.02)
