"""Reports on a disk that turns read-only under the training and is mounted anew: they wait, in order, and none is lost
that the disk has written."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from det_harness.trial.report import SpoolReporter
from det_harness.trial.spool import Spool
from small_disks import FailingDisk, failing_disk

from det_native.errors import MasterError, StorageError
from det_native.schema.rest import ReportsAccepted
from det_native.schema.states import ExitReason

PATIENCE = 60.0


class Master:
    """Takes reports, unless it is away."""

    def __init__(self) -> None:
        self.reports: list[dict[str, Any]] = []
        self.waiting: list[str] = []
        self.away = False
        self._changed = threading.Condition()

    def send(self, reports: list[str], progress: int | None = None, waiting: str | None = None) -> ReportsAccepted:
        if self.away:
            raise MasterError("nobody answers")
        with self._changed:
            self.reports += [json.loads(report) for report in reports]
            if waiting is not None:
                self.waiting.append(waiting)
            self._changed.notify_all()
        return ReportsAccepted(through=len(self.reports))

    def best(self) -> float | None:
        return None

    def until(self, *texts: str) -> None:
        """Wait until these warnings are the last that it has."""
        with self._changed:
            assert self._changed.wait_for(lambda: self.texts[-len(texts) :] == list(texts), PATIENCE), self.reports

    def until_waiting(self, text: str) -> None:
        """Wait until it is told what the trial waits for."""
        with self._changed:
            assert self._changed.wait_for(lambda: any(text in said for said in self.waiting), PATIENCE), self.waiting

    @property
    def texts(self) -> list[str]:
        return [report["text"] for report in self.reports if report["type"] == "warning"]


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[FailingDisk]:
    with failing_disk(tmp_path / "failing", "16M") as mounted:
        yield mounted


@pytest.fixture
def master() -> Master:
    return Master()


def reporter_on(disk: FailingDisk, master: Master) -> SpoolReporter:
    spool = Spool(disk.path / "runs" / "1" / "spool")
    disk.sync()
    return SpoolReporter(master, spool, metric=None)


def end(reporter: SpoolReporter, master: Master) -> None:
    """Report the end, and check that nothing is missing or twice."""
    master.away = False
    reporter.exit(ExitReason.COMPLETED, 1)
    assert reporter.close(PATIENCE)
    assert [report["seq"] for report in master.reports] == list(range(1, len(master.reports) + 1))
    assert master.reports[-1]["type"] == "exit"


def test_reports_go_on_while_it_fails_and_to_the_disk_once_it_is_mounted_anew(
    disk: FailingDisk, master: Master
) -> None:
    reporter = reporter_on(disk, master)
    reporter.warning("before")
    master.until("before")
    disk.fail()
    reporter.warning("while it fails")
    master.until("before", "while it fails")
    master.away = True
    reporter.warning("it waits")
    disk.mend()
    reporter.warning("after")
    master.away = False
    master.until("before", "while it fails", "it waits", "after")
    end(reporter, master)


def test_the_master_hears_what_the_trial_waits_for(disk: FailingDisk, master: Master) -> None:
    reporter = reporter_on(disk, master)
    disk.fail()
    master.away = True
    reporter.warning("it waits")
    master.away = False
    master.until_waiting(f"waits for the disk, which cannot be written, in {disk.path}")
    end(reporter, master)


def test_what_was_written_is_read_again_in_order(disk: FailingDisk, master: Master) -> None:
    reporter = reporter_on(disk, master)
    master.away = True
    reporter.warning("on the disk")
    disk.sync()
    disk.fail()
    reporter.warning("in memory")
    disk.mend()
    master.away = False
    master.until("on the disk", "in memory")
    end(reporter, master)


def test_reports_that_the_disk_has_lost_end_the_run(disk: FailingDisk, master: Master) -> None:
    reporter = reporter_on(disk, master)
    master.away = True
    reporter.warning("never written")
    disk.fail()
    disk.mend()
    master.away = False
    with pytest.raises(StorageError, match="were lost with the disk"):
        reporter.close(PATIENCE)
    assert reporter.stop_requested
    assert master.reports == []
