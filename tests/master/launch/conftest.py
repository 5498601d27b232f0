"""Launchers whose workers run ``launch_entries``."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from det_native.master.launch.local import LocalLauncher

HERE = str(Path(__file__).parent)


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Callable[..., LocalLauncher]]:
    """Make launchers whose workers run ``launch_entries``; all are closed with their workers."""
    made: list[LocalLauncher] = []

    def make_one(*, variables: dict[str, str] | None = None, **arguments: object) -> LocalLauncher:
        environment = {**os.environ, "PYTHONPATH": HERE, **(variables or {})}
        launcher = LocalLauncher(
            tmp_path / "standby",
            environment=environment,
            **{"entry": "launch_entries:run", **arguments},  # type: ignore[arg-type]
        )
        made.append(launcher)
        return launcher

    yield make_one
    for launcher in made:
        launcher.close(kill_workers=True)
