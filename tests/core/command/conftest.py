"""A master for the tests of commands, and a folder that is submitted to it as a user does."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path += [str(Path(__file__).resolve().parents[2] / "end_to_end")]

from faults import Cluster, Gate, running_cluster

from det_native.client.handles import Experiment


@pytest.fixture(scope="session")
def command_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A master with standbys for commands."""
    with running_cluster(tmp_path_factory.mktemp("command-cluster"), "core") as cluster:
        yield cluster


@pytest.fixture
def cluster(command_cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    """The master, which is also the one that handles in this process find; nothing runs on it."""
    monkeypatch.setenv("DET_HOME", str(command_cluster.home.path))
    with command_cluster.clearing() as cleared:
        yield cleared


@pytest.fixture
def gate() -> Iterator[Gate]:
    """Where a script waits for the test."""
    made = Gate()
    yield made
    made.close()


@pytest.fixture
def submit(cluster: Cluster, tmp_path: Path) -> Callable[..., Experiment]:
    """Submit a folder with these files by ``det experiment create``; gives the handle."""

    def submitted(entrypoint: str | list[str], files: dict[str, str], *options: str, **config: Any) -> Experiment:
        folder = tmp_path / "code"
        folder.mkdir(exist_ok=True)
        for name, text in files.items():
            (folder / name).write_text(text)
        path = tmp_path / "config.yaml"
        path.write_text(json.dumps({"entrypoint": entrypoint, **config}))
        printed = cluster.det("experiment", "create", str(path), str(folder), "--json", *options)
        return cluster.attach(json.loads(printed.splitlines()[-1])["id"])

    return submitted
