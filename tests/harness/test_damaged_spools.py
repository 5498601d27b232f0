"""Spools whose files a disk has damaged, at every place that is drawn: nothing that was not reported is ever taken."""

from __future__ import annotations

import json
import tempfile
import threading
from pathlib import Path

import pytest
from det_harness.trial.report import SpoolReporter
from det_harness.trial.spool import Spool, read_spool
from hypothesis import given
from hypothesis import strategies as st

from det_native.errors import MasterError, StorageError
from det_native.master.flow.spool import DamagedSpoolError, left_batches
from det_native.schema.rest import MetricsReport, ReportsAccepted

ROWS = 6


def report(seq: int) -> str:
    columns = {"type": "metrics", "kind": "training", "batches": [seq], "metrics": {"loss": [seq / 8]}}
    return json.dumps({"seq": seq, **columns})


@given(st.data())
def test_what_is_read_from_damaged_files_was_written_there(data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as folder:
        spool = Spool(Path(folder) / "spool", segment_bytes=data.draw(st.sampled_from([200, 10_000])))
        for seq in range(1, ROWS + 1):
            spool.append(seq, report(seq))
        spool.close()
        path = data.draw(st.sampled_from(sorted(spool.directory.iterdir())))
        whole = path.read_bytes()
        content = bytearray(whole)
        offset = data.draw(st.integers(0, len(content) - 1))
        if data.draw(st.booleans()):
            del content[offset:]
        else:
            content[offset] ^= 1 << data.draw(st.integers(0, 7))
        path.write_bytes(content)

        taken: list[int] = []
        named = True
        try:
            for batch in left_batches(Path(folder)):
                for one in batch.reports:
                    assert isinstance(one, MetricsReport)
                    assert one.metrics == {"loss": [one.seq / 8]}
                    assert one.batches == [one.seq]
                    taken.append(one.seq)
        except DamagedSpoolError as error:
            named = str(path) in str(error)
        assert named
        assert taken == sorted(set(taken))
        # Without its end, or without its checksum, the last line is still what was written.
        assert len(taken) < ROWS or path.read_bytes() in (whole[:-1], whole[: whole.rindex(b"\t")])

        found: list[str] = []
        with_damage = False
        try:
            found.extend(read_spool(spool.directory))
            for text in found:
                assert text == report(json.loads(text)["seq"])
        except StorageError as error:
            with_damage = str(path) in str(error)
        assert with_damage or len(found) < ROWS


class Away:
    """A master that takes nothing until it is back; it keeps what it has taken."""

    def __init__(self) -> None:
        self.back = False
        self.asked = threading.Event()
        self.taken: list[str] = []

    def send(self, reports: list[str], progress: int | None = None, waiting: str | None = None) -> ReportsAccepted:
        """Take reports."""
        self.asked.set()
        if not self.back:
            raise MasterError("away")
        self.taken += reports
        return ReportsAccepted(through=len(self.taken))

    def best(self) -> float | None:
        """Return None."""
        return None


@pytest.mark.parametrize("damage", ["flipped", "cut short"])
def test_a_worker_sends_none_of_them_and_its_run_fails_with_the_name_of_the_file(tmp_path: Path, damage: str) -> None:
    master = Away()
    reporter = SpoolReporter(master, Spool(tmp_path), metric="loss")
    for batch in range(1, 21):
        reporter.validation(batch, {"loss": batch / 8})
    assert master.asked.wait(60)
    [path] = tmp_path.iterdir()
    content = bytearray(path.read_bytes())
    third = content.index(b"0.375")  # its loss
    content[third + 2] ^= 1
    path.write_bytes(content if damage == "flipped" else content[:third])
    master.back = True
    with pytest.raises(StorageError, match=str(path)):
        reporter.close(60)
    assert reporter.stop_requested
    assert all("0.275" not in text for text in master.taken)
