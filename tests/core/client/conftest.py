"""A master for the SDK of Determined in this process."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[2] / "master"))

from master_parts import Master, running_master

from det_native.experimental import client


@pytest.fixture
def sdk_master(tmp_path: Path) -> Iterator[Master]:
    """Run a master around a launcher without processes, to which the SDK has logged in, as nothing else has."""
    with running_master(tmp_path / "home") as running:
        client.login(str(running.client.base_url), user="determined", password=running.token)
        yield running
        client.logout()
