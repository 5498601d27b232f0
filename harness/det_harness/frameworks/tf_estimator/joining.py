"""How a process takes its role among those of its trial."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from det_harness.ranks.communicator import Communicator, OneProcess
from det_native.schema.job import Gang


@contextmanager
def in_its_role(gang: Gang | None, config: Mapping[str, Any], folder: Path) -> Iterator[Communicator]:
    """Take the role that the configuration gives this process; see ``FrameworkHarness.joined``."""
    yield OneProcess()
