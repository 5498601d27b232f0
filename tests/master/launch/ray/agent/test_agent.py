"""An agent with real workers: what they write comes to the master's home, and their ends are told after that."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from agent_parts import WORKER, ThreadBridge, check_job, text_of, trial_job, until

from det_native.master.launch.ray.agent.agent import NodeAgent
from det_native.master.launch.ray.asks.serving import AskServer

pytestmark = pytest.mark.slow

MakeAgent = Callable[..., NodeAgent]


def test_a_worker_runs_its_job_on_the_machine_and_what_it_leaves_comes_home(
    make_agent: MakeAgent, server: AskServer, home: Path
) -> None:
    agent = make_agent()
    with ThreadBridge(server, [agent]) as bridge:
        job = trial_job(home, "r1", "say", text="größe").model_dump_json()
        started = bridge.call(agent.start("r1", 0, job, WORKER))
        assert started["pid"]
        assert bridge.call(agent.start("r1", 0, job, WORKER)) == started, "a start that is asked for twice is one"
        [ended] = bridge.wait_for(("r1", 0))
        assert (ended.code, ended.begun) == (0, True)
        assert text_of(home / "runs/r1/output.log") == "größe\n"
        assert until(lambda: bridge.call(agent.runs()) == {})
        folder = Path(bridge.call(agent.facts()).folder)
        assert not list((folder / "runs").iterdir())


def test_a_check_leaves_its_result(make_agent: MakeAgent, server: AskServer, home: Path) -> None:
    agent = make_agent()
    with ThreadBridge(server, [agent]) as bridge:
        bridge.call(agent.start("c1", 0, check_job(home, "c1").model_dump_json(), WORKER))
        [ended] = bridge.wait_for(("c1", 0))
        assert ended.code == 0
        assert json.loads(text_of(home / "runs/c1/result.json")) == {}
