"""Agents in this process whose workers run ``launch_entries``, and what performs their asks without a master."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from agent_parts import AWAY, ENTRIES
from ray_cluster import RayCluster

from det_native.master.launch.ray.agent.agent import NodeAgent
from det_native.master.launch.ray.asks.serving import AskServer


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Give the folder of a master's home."""
    folder = tmp_path / "home"
    folder.mkdir()
    return folder


@pytest.fixture
def server(home: Path) -> Iterator[AskServer]:
    """Give what performs asks on the home, while its master is away."""
    serving = AskServer(home, AWAY)
    yield serving
    serving.close()


@pytest.fixture
def make_agent(tmp_path: Path) -> Iterator[Callable[..., NodeAgent]]:
    """Make agents, each with a folder of its own; all are closed with their workers."""
    agents: list[NodeAgent] = []

    def make(
        name: str = "agent", entry: str = "launch_entries:run", path: str = ENTRIES, **variables: str
    ) -> NodeAgent:
        environment = {**os.environ, "PYTHONPATH": path, **variables}
        folder = tmp_path / "machine" / name
        agents.append(NodeAgent(str(folder), "cluster", "cpu", 2, entry=entry, environment=environment))
        return agents[-1]

    yield make
    for agent in agents:
        asyncio.run(agent.close(kill_workers=True))


@pytest.fixture(scope="session")
def ray_cluster() -> Iterator[RayCluster]:
    """Give a Ray cluster of two nodes on this machine, with 4 and 2 CPUs; tests leave it as they found it."""
    cluster = RayCluster(4)
    try:
        cluster.add_node(2, labels={"zone": "b"})
        yield cluster
    finally:
        cluster.stop()
