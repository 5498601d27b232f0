"""All processes that the tests here start come of one. The trials on the digits lie beside the tests of PyTorch."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[1] / "pytorch"))

from rank_rig import RankServer


@pytest.fixture(scope="session", autouse=True)
def rank_server() -> Iterator[None]:
    """Have a process that has imported torch for as long as the tests run: all others are forked from it."""
    RankServer.current = RankServer()
    yield
    RankServer.current.close()
    RankServer.current = None
