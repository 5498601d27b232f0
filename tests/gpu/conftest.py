"""What needs a GPU. The trials and the rigs lie beside the tests of what they are of."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

_TESTS = Path(__file__).parents[1]
for _folder in ("pytorch", "distributed", "end_to_end", "experimental"):
    sys.path.append(str(_TESTS / _folder))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip them all where there is no GPU, with a line that says so."""
    if torch.cuda.is_available():
        return
    for item in items:
        if item.get_closest_marker("cuda"):
            item.add_marker(pytest.mark.skip(reason="needs a GPU"))


@pytest.fixture
def deterministic(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let the GPU compute the same bits every time, as far as torch can."""
    monkeypatch.setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    torch.use_deterministic_algorithms(True)
    yield
    torch.use_deterministic_algorithms(False)
