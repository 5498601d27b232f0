"""What a training logs: what is kept of it, what is told of the rest, and that nothing of it ends the training."""

from __future__ import annotations

import io
import json
import math
import os
import sys
import time
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from det_harness.logged import limits, recorder
from det_harness.logged.limits import checked_name, series_name
from det_harness.logged.recorder import Recorder
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.figure import Figure
from PIL import Image
from rows_reporter import RowsReporter

import det_native as det
from det_native.logged.place import taken_by
from det_native.schema.rest import Medium
from det_native.storage.blobs import BlobStore


class Told(RowsReporter):
    """Keeps all warnings, not only the last."""

    def __init__(self) -> None:
        super().__init__()
        self.warnings: list[str] = []

    def warning(self, text: str) -> None:
        self.warnings.append(text)


class Training:
    """What logs into a folder, at the batch that a test says."""

    def __init__(self, folder: Path) -> None:
        self.batch = 0
        self.reporter = Told()
        self.blobs = BlobStore(str(folder / "blobs"))
        self.events = folder / "events"
        self.recorder = Recorder(self.reporter, lambda: self.blobs, lambda: self.batch, self.events)

    @property
    def media(self) -> list[Medium]:
        self.recorder.settle()
        return self.reporter.logged_media

    def content(self, place: int = -1) -> bytes:
        return self.blobs.read(self.media[place].sha256)

    def pixels(self, place: int = -1) -> Any:
        return np.asarray(Image.open(io.BytesIO(self.content(place))))

    def table(self, place: int = -1) -> Any:
        return json.loads(self.content(place))


@pytest.fixture
def training(tmp_path: Path) -> Iterator[Training]:
    """What takes what ``det.log`` and its siblings are given."""
    made = Training(tmp_path)
    with taken_by(made.recorder):
        yield made
    made.recorder.close()


def logged(training: Training) -> list[tuple[int, Mapping[str, float]]]:
    return [(row.batch, row.metrics) for row in training.reporter.logged_rows]


# -- numbers


def test_numbers_of_every_kind_are_logged_at_their_batch(training: Training) -> None:
    det.log(f1=0.5, whole=3, truth=True, small=np.float32(0.25))
    det.log({"f1": torch.tensor(0.75), "one": np.array([2])}, more=np.bool_(True))
    training.batch = 4
    det.log(nan=float("nan"), inf=-math.inf, huge=10**400)
    first, second = logged(training)
    assert first == (0, {"f1": 0.75, "whole": 3.0, "truth": 1.0, "small": 0.25, "one": 2.0, "more": 1.0})
    assert second[0] == 4
    assert math.isnan(second[1]["nan"])
    assert (second[1]["inf"], second[1]["huge"]) == (-math.inf, math.inf)
    assert training.reporter.warnings == []


def test_what_is_no_number_is_left_out_and_told_once(training: Training) -> None:
    det.log(wrong=[1, 2], right=1)
    det.log(wrong="0.5", array=np.zeros(3), none=None, tensor=torch.zeros(2, 2))
    det.log([1, 2])  # type: ignore[arg-type]
    assert logged(training) == [(0, {"right": 1.0})]
    [told] = training.reporter.warnings
    assert told.startswith("det.log(wrong=...) was given a list, which is no number, and is left out")


def test_more_names_than_a_trial_may_have_are_left_out(training: Training, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorder, "NAMES", 3)
    det.log({f"m{number}": number for number in range(5)})
    det.log(m0=7, m4=1)
    assert logged(training) == [(0, {"m0": 7.0, "m1": 1.0, "m2": 2.0})]
    [told] = training.reporter.warnings
    assert "more than 3 names; 'm3' and others are left out" in told


@given(st.dictionaries(st.one_of(st.text(), st.integers(), st.none()), st.one_of(st.floats(), st.text(), st.binary())))
def test_whatever_is_logged_goes_through_json_and_raises_nothing(
    tmp_path_factory: pytest.TempPathFactory, given_metrics: dict[Any, Any]
) -> None:
    made = Training(tmp_path_factory.getbasetemp())
    made.recorder = Recorder(made.reporter, lambda: made.blobs, lambda: 0)
    made.recorder.log(given_metrics)
    for row in made.reporter.logged_rows:
        assert json.loads(row.model_dump_json())["batch"] == 0
        assert all(name == checked_name(name) for name in row.metrics)


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        ("f1", "f1"),
        ("val/f1 score", "val/f1 score"),
        ("../../etc/passwd", "etc/passwd"),
        ("/a//b/./c", "a/b/c"),
        ("a\\..\\b", "a/b"),
        ("line\nbreak\x00", "line_break_"),
        ("half \ud800 pair", "half _ pair"),
        ("größe 図", "größe 図"),
        ("x" * 600, "x" * 500),
        (3, "3"),
        ("..", ""),
        ("  ", ""),
    ],
)
def test_names_are_kept_without_what_no_name_should_have(name: Any, kept: str) -> None:
    assert checked_name(name) == kept


@given(st.text())
def test_a_checked_name_stays_what_it_is(name: str) -> None:
    kept = checked_name(name)
    assert checked_name(kept) == kept
    kept.encode()
    assert ".." not in kept.split("/")


def test_a_name_that_is_changed_is_told(training: Training) -> None:
    det.log_text("../note", "text")
    det.log({"a\nb": 1})
    assert [medium.name for medium in training.media] == ["note"]
    assert logged(training) == [(0, {"a_b": 1.0})]
    [told] = training.reporter.warnings
    assert told == "What is logged has the name '../note'; it is kept as 'note'."


def test_where_nothing_trains_nothing_is_kept_and_it_is_said_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("det_native.logged.place._said", False)
    with pytest.warns(UserWarning, match="Nothing trains here") as told:
        det.log(f1=1)
    assert [warning.filename for warning in told] == [__file__]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        det.log_image("samples", np.zeros((2, 2)))


def test_a_number_costs_a_few_microseconds(training: Training) -> None:
    det.log(f1=0.5)
    training.recorder._events.close()
    begun = time.perf_counter()
    for batch in range(2_000):
        training.batch = batch
        det.log(f1=0.5)
    assert (time.perf_counter() - begun) / 2_000 < 500e-6  # some 5e-6 on a machine that does nothing else


# -- pictures


@pytest.mark.parametrize(
    ("array", "shape"),
    [
        (np.zeros((5, 7)), (5, 7)),
        (np.zeros((5, 7, 1)), (5, 7)),
        (np.zeros((5, 7, 3)), (5, 7, 3)),
        (np.zeros((5, 7, 4)), (5, 7, 4)),
        (np.zeros((3, 5, 7)), (5, 7, 3)),
        (np.zeros((1, 5, 7)), (5, 7)),
        (np.zeros((4, 5, 7, 3)), (12, 16, 3)),
        (np.zeros((3, 1, 5, 7)), (12, 16)),
        (np.zeros((10, 5, 7)), (19, 34)),
        (torch.zeros(3, 5, 7), (5, 7, 3)),
        (torch.zeros(3, 5, 3), (5, 3, 3)),
        (torch.zeros(2, 3, 5, 3, requires_grad=True), (5, 8, 3)),
        ([[0, 1], [1, 0]], (2, 2)),
    ],
)
def test_arrays_of_all_layouts_are_pictures(training: Training, array: Any, shape: tuple[int, ...]) -> None:
    det.log_image("samples", array)
    assert training.reporter.warnings == []
    [medium] = training.media
    assert (medium.height, medium.width, medium.format) == (*shape[:2], "png")
    assert training.pixels().shape == shape


@pytest.mark.parametrize(
    ("values", "shown"),
    [
        ([False, True], [0, 255]),
        ([0.0, 0.5, 1.0], [0, 128, 255]),
        ([-1.0, 0.0, 1.0], [0, 128, 255]),
        ([0.0, 127.0, 255.0], [0, 127, 255]),
        ([0, 127, 255], [0, 127, 255]),
        ([0, 1, 1], [0, 255, 255]),
        ([-10.0, 0.0, 10.0], [0, 128, 255]),
        ([0.0, math.nan, math.inf, -math.inf, 1.0], [0, 0, 255, 0, 255]),
        ([0.5, 0.5], [128, 128]),
        ([0, 1000, 2000], [0, 128, 255]),
    ],
)
def test_values_of_all_ranges_become_bytes(training: Training, values: list[Any], shown: list[int]) -> None:
    det.log_image("line", np.array([values]))
    assert training.pixels().tolist() == [shown]


def test_figures_pictures_files_and_contents_are_pictures(training: Training, tmp_path: Path) -> None:
    figure = Figure(figsize=(2, 1), dpi=50)
    axes = figure.add_subplot()
    axes.plot([1, 2])
    drawn = Image.new("CMYK", (6, 4))
    Image.new("RGB", (9, 5)).save(tmp_path / "named.txt", format="JPEG")
    (tmp_path / "drawn.svg").write_text("<svg xmlns='http://www.w3.org/2000/svg'/>")
    Image.new("RGB", (3, 2)).save(tmp_path / "old.bmp")
    for value in (figure, axes, drawn, tmp_path / "named.txt", str(tmp_path / "drawn.svg"), tmp_path / "old.bmp"):
        det.log_image("picture", value)
    det.log_image("picture", (tmp_path / "named.txt").read_bytes())
    assert training.reporter.warnings == []
    found = [(medium.format, medium.width, medium.height, medium.number) for medium in training.media]
    assert found == [
        ("png", 100, 50, 0),
        ("png", 100, 50, 1),
        ("png", 6, 4, 2),
        ("jpeg", 9, 5, 3),
        ("svg", None, None, 4),
        ("png", 3, 2, 5),
        ("jpeg", 9, 5, 6),
    ]


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ("/nowhere/at/all.png", "there is no file '/nowhere/at/all.png'"),
        (object(), "an object of the type object is no picture"),
        (None, "an object of the type NoneType is no picture"),
        (3, "an array of the shape () is no picture"),
        (np.zeros(5), "an array of the shape (5,) is no picture"),
        (np.zeros((0, 5)), "an array of the shape (0, 5) has no pixels"),
        (np.zeros((2, 5, 6, 7)), "an array of the shape (2, 5, 6, 7) has no dimension of 1, 3 or 4 channels"),
        (np.zeros((2, 2), dtype=complex), "an array of complex128 is no picture"),
        (np.array([["a"]]), "an array of <U1 is no picture"),
        (b"no picture", "its first bytes are those of no picture that is known"),
        (b"", "its first bytes are those of no picture that is known"),
        (b"\x89PNG\r\n\x1a\n", "its first bytes are those of no picture that is known"),
    ],
)
def test_what_is_no_picture_is_left_out_in_one_sentence(training: Training, value: Any, why: str) -> None:
    det.log_image("samples", value)
    det.log_image("samples", value)
    assert training.media == []
    [told] = training.reporter.warnings
    assert told.startswith("log_image('samples') is left out, and the training goes on: ")
    assert why in told


def test_a_name_that_comes_second_is_the_name(training: Training) -> None:
    det.log_image(np.zeros((4, 4)), "samples")  # type: ignore[arg-type]
    det.log_table([{"a": 1}], "rows")  # type: ignore[arg-type]
    det.log_histogram(np.arange(9), "weights")  # type: ignore[arg-type]
    assert [medium.name for medium in training.media] == ["samples", "rows", "weights"]
    assert training.reporter.warnings == []
    det.log_image(np.zeros((4, 4)), np.ones((4, 4)))  # type: ignore[arg-type]
    told = " ".join(training.reporter.warnings)
    assert "log_image(a ndarray) is left out" in told
    assert "0." not in told, "the picture itself is not printed"


@pytest.mark.soak
@pytest.mark.slow
def test_a_picture_of_a_hundred_megabytes_is_made_smaller_and_told_once(training: Training) -> None:
    noise = np.random.default_rng(0).integers(0, 256, size=(6_000, 6_000, 3), dtype=np.uint8)
    det.log_image("large", noise)
    [medium] = training.media
    assert medium.size <= limits.MEDIUM_BYTES
    assert medium.width is not None
    assert 1_000 < medium.width < 4_000
    [told] = training.reporter.warnings
    assert "The picture 'large' (6000 x 6000 pixels) is too large" in told


def test_a_file_that_is_too_large_is_made_smaller(training: Training, tmp_path: Path) -> None:
    noise = np.random.default_rng(0).integers(0, 256, size=(2_200, 2_200, 3), dtype=np.uint8)
    Image.fromarray(noise).save(tmp_path / "noise.png", compress_level=0)
    assert (tmp_path / "noise.png").stat().st_size > limits.MEDIUM_BYTES
    det.log_image("noise", tmp_path / "noise.png")
    assert training.media[0].size <= limits.MEDIUM_BYTES


@settings(max_examples=60, deadline=None)
@given(st.recursive(st.one_of(st.none(), st.floats(), st.text(), st.binary(), st.integers()), st.lists, max_leaves=8))
def test_nothing_that_is_given_as_anything_raises(tmp_path_factory: pytest.TempPathFactory, value: Any) -> None:
    made = Training(tmp_path_factory.getbasetemp() / "any")
    made.recorder = Recorder(made.reporter, lambda: made.blobs, lambda: 0)
    for method in (made.recorder.log_image, made.recorder.log_table, made.recorder.log_histogram):
        method("name", value)  # type: ignore[operator]
    made.recorder.log_text(value, value)
    made.recorder.show(value)
    made.recorder.close()


# -- tables, texts, histograms


def test_tables_of_every_kind_have_columns_and_rows(training: Training) -> None:
    frame = pd.DataFrame({"a": [1, 2], "b": ["x", None], "c": [math.nan, math.inf]})
    for table in (
        frame,
        frame.set_index("b"),
        [{"a": 1}, {"b": "x"}],
        {"a": [1, 2], "b": np.array([0.5, 1.5])},
        {"a": 1, "b": "x"},
        np.arange(4).reshape(2, 2),
        [[1, "x"], [2]],
        frame["a"],
    ):
        det.log_table("table", table)
    assert training.reporter.warnings == []
    found = [(table["columns"], table["rows"]) for table in map(training.table, range(8))]
    assert found == [
        (["a", "b", "c"], [[1, "x", "NaN"], [2, None, "Infinity"]]),
        (["b", "a", "c"], [["x", 1, "NaN"], [None, 2, "Infinity"]]),
        (["a", "b"], [[1, None], [None, "x"]]),
        (["a", "b"], [[1, 0.5], [2, 1.5]]),
        (["a", "b"], [[1, "x"]]),
        (["0", "1"], [[0, 1], [2, 3]]),
        (["0", "1"], [[1, "x"], [2, None]]),
        (["a"], [[1], [2]]),
    ]


def test_of_a_long_table_the_first_rows_are_kept_and_it_is_told(training: Training) -> None:
    det.log_table("long", pd.DataFrame({"a": range(limits.TABLE_ROWS + 5)}))
    [medium] = training.media
    assert (medium.width, medium.height) == (1, limits.TABLE_ROWS + 5)
    assert len(training.table()["rows"]) == limits.TABLE_ROWS
    assert "has 10,005 rows and 1 columns; the first 10,000 and 1 are kept" in training.reporter.warnings[0]


@pytest.mark.parametrize("table", ["text", 3, object(), np.zeros((2, 2, 2))])
def test_what_is_no_table_is_left_out_in_one_sentence(training: Training, table: Any) -> None:
    det.log_table("table", table)
    assert training.media == []
    [told] = training.reporter.warnings
    assert told.startswith("log_table('table') is left out, and the training goes on: ")


def test_a_histogram_counts_finite_values(training: Training) -> None:
    det.log_histogram("weights", torch.tensor([[0.0, 1.0], [1.0, math.nan]]), bins=2)
    det.log_histogram("weights", [1, 2, 3], bins=[0, 2, 4])
    assert training.table(0) == {"counts": [1, 2], "edges": [0.0, 0.5, 1.0], "not_finite": 1}
    assert training.table(1) == {"counts": [1, 2], "edges": [0.0, 2.0, 4.0], "not_finite": 0}


@pytest.mark.parametrize(
    ("values", "bins"), [([], 3), ("text", 3), ([math.nan], 3), ([1], "many"), ([1], [2, 1]), (object(), 3)]
)
def test_what_makes_no_histogram_is_left_out_in_one_sentence(training: Training, values: Any, bins: Any) -> None:
    det.log_histogram("weights", values, bins=bins)
    assert training.media == []
    assert len(training.reporter.warnings) == 1


def test_a_long_text_is_cut(training: Training) -> None:
    det.log_text("note", "ü" * (limits.TEXT_CHARACTERS + 1))
    assert training.content().decode() == "ü" * limits.TEXT_CHARACTERS
    assert "the first 1,000,000 are kept" in training.reporter.warnings[0]


def test_a_trial_logs_so_many_media_and_no_more(training: Training, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorder, "MEDIA", 3)
    for number in range(5):
        det.log_text("note", number)
    assert [training.blobs.read(medium.sha256) for medium in training.media] == [b"0", b"1", b"2"]
    assert [told for told in training.reporter.warnings if "which is the limit" in told] == training.reporter.warnings
    assert len(training.reporter.warnings) == 1


def test_media_of_a_trial_have_so_many_bytes_and_no_more(training: Training, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorder, "MEDIA_BYTES", 10)
    det.log_text("note", "12345678")
    det.log_text("note", "123")
    det.log_text("note", "12")
    assert [medium.size for medium in training.media] == [8, 2]


def test_a_store_that_takes_nothing_is_told_and_the_training_goes_on(training: Training, tmp_path: Path) -> None:
    (tmp_path / "blobs").write_text("no folder")
    det.log_text("note", "text")
    det.log(f1=1)
    assert training.media == []
    assert logged(training) == [(0, {"f1": 1.0})]
    [told] = training.reporter.warnings
    assert told.startswith("What was logged cannot be kept, and the training goes on: ")


@pytest.mark.skipif(sys.platform == "win32", reason="there is no fork")
def test_a_process_that_was_forked_logs_nothing(training: Training) -> None:
    pid = os.fork()
    if not pid:
        det.log(f1=1)
        det.log_text("note", "text")
        os._exit(0)
    os.waitpid(pid, 0)
    assert training.media == []
    assert logged(training) == []


# -- what is shown


def test_figures_and_tables_that_are_shown_are_kept_and_the_rest_is_not(training: Training) -> None:
    figure = Figure()
    figure.suptitle("Samples of epoch 12")
    training.batch = 3
    assert training.recorder.show(figure)
    assert training.recorder.show(Figure())
    assert training.recorder.show(Figure(label="confusion matrix"))
    assert training.recorder.show(Image.new("L", (4, 4)))
    assert training.recorder.show(pd.DataFrame({"a": [1]}))
    assert not training.recorder.show("text")
    assert not training.recorder.show(np.zeros((4, 4)))
    training.batch = 4
    assert training.recorder.show(Figure())
    assert [(medium.batch, medium.name, medium.caption) for medium in training.media] == [
        (3, "Samples of epoch #", "Samples of epoch 12"),
        (3, "figure 1", ""),
        (3, "confusion matrix", "confusion matrix"),
        (3, "image 1", ""),
        (3, "table 1", ""),
        (4, "figure 1", ""),
    ]


def test_numbers_of_titles_make_no_names() -> None:
    assert series_name("Epoch 3 of 10, loss 0.25") == "Epoch # of #, loss #"


# -- TensorBoard


def test_event_files_have_all_of_it(training: Training) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    training.batch = 7
    det.log(f1=0.5)
    det.log_image("samples", np.zeros((4, 4, 3)))
    det.log_text("note", "hello")
    det.log_table("table", {"a": [1]})
    det.log_histogram("weights", [1, 2, 3])
    training.recorder.close()
    found = EventAccumulator(str(training.events / "logged"), size_guidance={"tensors": 0}).Reload()
    assert [(event.step, event.value) for event in found.Scalars("f1")] == [(7, 0.5)]
    assert [(event.step, event.width) for event in found.Images("samples")] == [(7, 4)]
    assert found.Histograms("weights")[0].histogram_value.num == 3
    texts = {tag: found.Tensors(tag)[0].tensor_proto.string_val[0] for tag in ("note", "table")}
    assert texts["note"] == b"hello"
    assert b"| a |" in texts["table"]


def test_event_files_go_on_after_a_checkpoint_was_restored(training: Training) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    det.log(f1=0.5)
    [path] = (training.events / "logged").iterdir()
    path.unlink()
    training.batch = 1
    det.log(f1=0.75)
    training.recorder.close()
    found = EventAccumulator(str(training.events / "logged")).Reload()
    assert (1, 0.75) in [(event.step, event.value) for event in found.Scalars("f1")]


def test_each_name_that_is_left_out_is_told_once_up_to_a_number(training: Training) -> None:
    for _ in range(2):
        det.log_image("broken", {"no": "picture"})
        det.log_image("gone", "nothing.png")
    assert [("'broken'" in text, "'gone'" in text) for text in training.reporter.warnings] == [
        (True, False),
        (False, True),
    ]
    for number in range(100):
        det.log_image(f"gone {number}", "nothing.png")
    assert len(training.reporter.warnings) == 20
