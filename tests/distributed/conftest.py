"""All processes that the tests here start come of one. The trials on the digits lie beside the tests of PyTorch."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[1] / "pytorch"))

from forked_programs import ForkedPrograms


@pytest.fixture(scope="session", autouse=True)
def _programs(torch_programs: ForkedPrograms) -> None:
    """Have a process that has imported torch for as long as the tests run: all others are forked from it."""
