"""Reports for which a disk that is really full has no room wait in memory, in order, and arrive once each."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from det_harness.trial.report import SpoolReporter
from det_harness.trial.spool import Spool
from det_harness.worker.forgiving import forgiving
from small_disks import SmallDisk, small_disk

from det_native.errors import RequestError
from det_native.schema.manifests import CheckpointManifest
from det_native.schema.rest import ReportsAccepted
from det_native.schema.states import ExitReason

PATIENCE = 60.0


class Master:
    """Takes reports, or has no room for them either."""

    def __init__(self) -> None:
        self.full = threading.Event()
        self.refused = threading.Event()
        self.told = threading.Event()
        self.taken: list[str] = []
        self.waits: list[str] = []

    def send(self, reports: list[str], progress: int | None = None, waiting: str | None = None) -> ReportsAccepted:
        if reports and self.full.is_set():
            self.refused.set()
            raise RequestError(507, "The disk of the master is full.")
        self.taken += reports
        if waiting is not None:
            self.waits.append(waiting)
            self.told.set()
        return ReportsAccepted(through=len(self.taken))

    def best(self) -> float | None:
        return None


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    with small_disk(tmp_path / "disk", "256k") as mounted:
        yield mounted


def test_reports_go_from_memory_to_the_master(disk: SmallDisk) -> None:
    master, noted = Master(), []
    reporter = SpoolReporter(
        master, Spool(disk.path / "spool"), metric="loss", on_checkpoint=lambda: noted.append("reported")
    )
    reporter.started(0)
    disk.fill()
    master.full.set()
    manifest = CheckpointManifest(
        uuid="u",
        framework="torch",
        framework_version="",
        det_version="",
        batch=2,
        experiment_id=1,
        trial_id=1,
        run_id="r",
        bundle_id=None,
        hparams={},
        created="now",
    )
    for batch in range(1, 200):
        reporter.training([batch], {"loss": [0.5] * 1, **{f"metric {number}": [0.0] for number in range(50)}})
        reporter.validation(batch, {"loss": 0.25})
    reporter.checkpoint("somewhere", manifest)
    assert master.refused.wait(PATIENCE)
    assert noted == []
    master.full.clear()
    reporter.exit(ExitReason.COMPLETED, 199)
    assert reporter.close(PATIENCE)
    told = [json.loads(report) for report in master.taken]
    assert [report["seq"] for report in told] == list(range(1, len(told) + 1))
    assert [report["type"] for report in told[-2:]] == ["checkpoint", "exit"]
    rows = [row for report in told if report.get("kind") == "training" for row in report["batches"]]
    assert rows == list(range(1, 200))
    assert noted == ["reported"]


def test_printing_never_fails_and_what_is_lost_is_said(disk: SmallDisk) -> None:
    path = disk.path / "output.log"
    with path.open("wb", buffering=0) as file:
        stream = forgiving(file.fileno())
        print("before", file=stream)
        disk.fill()
        for _ in range(100):
            print("x" * 1000, file=stream)
        disk.empty()
        print("after", file=stream)
        stream.flush()
    text = path.read_text()
    assert text.startswith("before\n")
    assert "bytes of output are lost: the disk was full ...]\nafter\n" in text
