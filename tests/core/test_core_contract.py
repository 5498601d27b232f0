"""The contract of the Core API, by a worker's services and by a script that a master records."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from contract import CoreContract
from doors import Door, RecordedDoor, WorkerDoor

from det_native.schema.home import Home


class TestWorker(CoreContract):
    """In the process of a worker."""

    @pytest.fixture
    def door(self, tmp_path: Path) -> Iterator[Door]:
        """Its services."""
        door = WorkerDoor(tmp_path)
        yield door
        door.context.close()


@pytest.mark.slow
class TestRecorded(CoreContract):
    """In a script's own process."""

    @pytest.fixture
    def door(self, recorded: Home) -> Iterator[Door]:
        """Its context, which a master records."""
        door = RecordedDoor()
        yield door
        door.context.close()
