"""What a training prints, numbered for the cell that waits: lines as they end, within limits."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from det_harness.logged import cell_output
from det_harness.logged.cell_output import CellOutput, mime_data
from det_harness.logged.recorder import Recorder
from det_harness.logged.showing import clear_output, display, update_display
from det_harness.worker.forgiving import forgiving
from matplotlib.figure import Figure
from rows_reporter import RowsReporter

from det_native.logged.place import taken_by
from det_native.schema.outputs import CellItem, MediaKind
from det_native.storage.blobs import BlobStore


def texts(output: CellOutput) -> list[tuple[str, str]]:
    return [(item.stream, item.text) for item in output.take()[1]]


def test_a_line_counts_once_it_ends_by_what_it_shows_last() -> None:
    output = CellOutput()
    for piece in ("a", "b\nc", "\r 10 %"):
        output.printed("stdout", piece)
    output.printed("stderr", "warned\n")
    assert texts(output) == [("stdout", "ab\n"), ("stderr", "warned\n")]
    output.printed("stdout", "\r100 %\n\n")
    assert texts(output) == [("stdout", "100 %\n"), ("stdout", "\n")]
    output.printed("stdout", "rest")
    output.end()
    output.printed("stdout", "of the program\n")
    assert output.take() == (4, [CellItem(stream="stdout", text="rest")])


def test_what_is_too_much_is_left_to_the_log_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cell_output, "CELL_BYTES", 1000)
    monkeypatch.setattr(cell_output, "CELL_ITEMS", 10)
    output = CellOutput()
    output.printed("stdout", "x\n" * 30)
    first, items = output.take()
    assert (first, len(items)) == (0, 30)
    shown = [item.text for item in items if item.text]
    assert shown[:-1] == ["x\n"] * 9
    assert "experiment.logs()" in shown[-1]
    output.clear()
    output.printed("stdout", "y\n")
    assert output.take() == (30, [CellItem(clear=True), CellItem(stream="stdout", text="y\n")])


def test_a_cleared_cell_is_sent_what_came_after() -> None:
    output = CellOutput()
    output.printed("stdout", "old\npart")
    output.clear()
    output.printed("stdout", "new\n")
    assert output.take() == (1, [CellItem(clear=True), CellItem(stream="stdout", text="new\n")])


class Drawn:
    """What a notebook shows as HTML and more."""

    def __repr__(self) -> str:
        return "drawn"

    def _repr_html_(self) -> str:
        return "<i>drawn</i>"

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        return {"application/json": {"a": 1}}


def test_an_object_is_shown_by_all_its_mime_types() -> None:
    shown = {"text/plain": "drawn", "text/html": "<i>drawn</i>", "application/json": {"a": 1}}
    assert mime_data(Drawn()) == shown


def test_displays_go_to_the_cell_with_their_names_and_to_the_log_as_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    reporter, blobs = RowsReporter(), BlobStore(str(tmp_path))
    recorder = Recorder(reporter, lambda: blobs, lambda: 3, output=CellOutput())
    monkeypatch.setattr(sys, "stdout", forgiving(1))
    with taken_by(recorder):
        display("cleared")
        clear_output()
        display({"a": 1}, display_id="x")
        update_display(2, display_id="x")
        print("line")
        display(Figure())
        recorder.end_output()
        print("after")
    recorder.close()
    image, part = reporter.logged_media
    assert (image.kind, part.kind, part.name, part.batch) == (MediaKind.IMAGE, MediaKind.OUTPUT, "1", 3)
    clear, *items = json.loads(blobs.read(part.sha256))["items"]
    assert clear == {"clear": True}
    assert items[:3] == [
        {"data": {"text/plain": "{'a': 1}"}, "display_id": "x"},
        {"data": {"text/plain": "2"}, "display_id": "x", "update": True},
        {"stream": "stdout", "text": "line\n"},
    ]
    assert items[3]["picture"] == image.sha256
    assert capfd.readouterr().out.splitlines() == ["'cleared'", "{'a': 1}", "2", "line", "after"]
