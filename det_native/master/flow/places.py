"""Where a master keeps things, and how workers reach it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from det_native.schema import rest


@dataclass(frozen=True)
class Places:
    """Where the master keeps things, and how workers reach it.

    Of each trial's output `output_bytes` are kept. Blobs and data lie below `storage_url`, if it is given, with
    `storage_options`. New experiments that name no storage keep their checkpoints at `checkpoint_url`, if it is given,
    with `checkpoint_options`. With `several_machines` workers may be elsewhere than the master.
    """

    home: Path
    url: str
    slots: tuple[rest.SlotInfo, ...]
    output_bytes: int = 16 << 20
    storage_url: str = ""
    storage_options: Mapping[str, Any] = field(default_factory=dict, repr=False)
    checkpoint_url: str = ""
    checkpoint_options: Mapping[str, Any] = field(default_factory=dict, repr=False)
    several_machines: bool = False

    @property
    def blobs(self) -> str:
        """The blob store."""
        return self._below("blobs")

    @property
    def own_blobs(self) -> Path:
        """The blobs that lie in the home: all of them, or those from before there was another storage."""
        return self.home / "blobs"

    @property
    def data(self) -> str:
        """The store of data that were brought here."""
        return self._below("data")

    @property
    def own_data(self) -> Path:
        """The data that lie in the home, as `own_blobs` do; and what is on its way to another storage."""
        return self.home / "data"

    @property
    def cache(self) -> Path:
        """What workers of this machine have brought here."""
        return self.home / "cache"

    def _below(self, name: str) -> str:
        return f"{self.storage_url.rstrip('/')}/{name}" if self.storage_url else str(self.home / name)

    @property
    def checkpoints(self) -> str:
        """Checkpoints of experiments that choose no storage of their own."""
        return str(self.home / "checkpoints")

    def run(self, run_id: str) -> Path:
        """Return the folder of one run or check."""
        return self.home / "runs" / run_id

    @property
    def threads(self) -> int:
        """Threads that a worker on one slot computes with."""
        return max(1, len(os.sched_getaffinity(0)) // max(len(self.slots), 1))
