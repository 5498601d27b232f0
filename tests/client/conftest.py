"""A master for handles of this process."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[1] / "master"))

from master_parts import Master, running_master


@pytest.fixture
def named_master(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Master]:
    """Run a master around a launcher without processes; handles and ``det`` find it."""
    with running_master(tmp_path / "home") as running:
        monkeypatch.setenv("DET_MASTER", str(running.client.base_url))
        monkeypatch.setenv("DET_TOKEN", running.token)
        yield running
