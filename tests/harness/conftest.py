"""What the tests of workers share: the process that all of them are forked from."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from worker_program import Starter


@pytest.fixture(scope="session")
def starter(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Starter]:
    """Starts workers. What the loader workers of a killed process leave in their temporary folder is nobody's."""
    with Starter(tmp_path_factory.mktemp("workers")) as made:
        yield made
