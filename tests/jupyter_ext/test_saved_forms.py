"""What a notebook keeps of an experiment whose kernel is gone, as the Jupyter server has it drawn."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

import psutil
import pytest
from jupyter_parts import PATIENCE, Jupyter, MasterProcess
from local_experiments import write_experiment

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


async def test_a_local_run_and_its_trial_are_told_without_a_master(jupyter: Jupyter) -> None:
    experiment = write_experiment(name="trained here", trials=2)
    headers = {"Authorization": "token wrong"}
    assert (await jupyter.client.get("saved/local/1", headers=headers)).status_code == 403
    detail = experiment.detail()
    form = (await jupyter.get("saved/local/1")).json()
    assert (form["created"], form["state"]) == (detail.created, "COMPLETED")
    assert form["data"]["text/plain"].startswith("Experiment local-1: trained here: completed, 2 trials")
    assert "image/png" in form["data"]
    trial = experiment.trials[1]
    form = (await jupyter.get(f"saved/local/1/{trial.id}")).json()
    assert (form["created"], form["state"]) == (trial.detail().created, "COMPLETED")
    assert form["data"]["text/plain"].startswith("Trial 2 of experiment local-1")
    away = await jupyter.get("saved/experiments/1")
    assert away.status_code == 503
    assert "master" in away.json()["error"]
    missing = await jupyter.get("saved/local/1/3")
    assert missing.status_code == 503
    assert "local-1 has no trial 3" in missing.json()["error"]
    for path in ("local-1", "1/1/1", "1.5", "1/x", "-1"):
        assert (await jupyter.get(f"saved/local/{path}")).status_code == 404, path
    assert read_runtime(Home.default()) is None, "no master was started"


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
