"""What code reports by the Core API arrives, whichever way leads to its context: the tests that each way passes."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from doors import Door

from det_native.core import Context
from det_native.errors import CheckpointNotFoundError


class CoreContract:
    """Tests of a way; a subclass has a fixture ``door`` with it."""

    @pytest.fixture
    def context(self, door: Door) -> Context:
        """Its context."""
        return door.context

    def test_rows_of_all_groups_arrive(self, door: Door, context: Context) -> None:
        for step in range(1, 4):
            context.train.report_training_metrics(step, {"loss": 1 / step, "rate": 0.5})
        context.train.report_validation_metrics(3, {"loss": 0.25})
        context.train.report_metrics("test", 3, {"accuracy": 0.75})
        context.close()

        assert door.rows("training") == [{"batch": step, "loss": 1 / step, "rate": 0.5} for step in range(1, 4)]
        assert door.rows("validation") == [{"batch": 3, "loss": 0.25}]
        assert door.rows("logged") == [{"batch": 3, "test/accuracy": 0.75}]

    def test_what_comes_after_the_same_steps_is_one_row(self, door: Door, context: Context) -> None:
        for step in (1, 2):
            context.train.report_training_metrics(step, {"loss": 1.0, "rate": 0.5})
            context.train.report_training_metrics(step, {"norm": 2.0, "rate": 0.25})
            context.train.report_validation_metrics(step, {"loss": 1.0, "words": ["a"]})
            context.train.report_validation_metrics(step, {"second": 3.0})
        context.close()

        assert door.rows("training") == [{"batch": step, "loss": 1.0, "rate": 0.25, "norm": 2.0} for step in (1, 2)]
        assert door.rows("validation") == [
            {"batch": step, "loss": 1.0, "words": ["a"], "second": 3.0} for step in (1, 2)
        ]

    def test_steps_that_begin_anew_in_each_epoch_lose_no_row(
        self, door: Door, context: Context, caplog: pytest.LogCaptureFixture
    ) -> None:
        for epoch in range(2):
            for step in range(1, 4):
                context.train.report_training_metrics(step, {"loss": 10.0 * epoch + step})
        context.close()

        assert [row["loss"] for row in door.rows("training")] == [1, 2, 3, 11, 12, 13]
        assert caplog.text.count("went back from 3 to 1") == 1

    def test_values_of_all_kinds(self, door: Door, context: Context) -> None:
        metrics: dict[str, Any] = {"by class": {"cat": 1, "dog": 0.5}, "flag": True, "nan": math.nan, "inf": math.inf}
        context.train.report_training_metrics(1, metrics)
        context.train.report_validation_metrics(1, {**metrics, "matrix": [[1, 2], [3, 4]], "name": "a"})
        context.close()

        numbers = {"batch": 1, "by class.cat": 1, "by class.dog": 0.5, "flag": 1, "nan": "NaN", "inf": "Infinity"}
        assert door.rows("training") == [numbers]
        assert door.rows("validation") == [{**numbers, "matrix": [[1, 2], [3, 4]], "name": "a"}]

    def test_checkpoints_are_stored_read_and_deleted(self, door: Door, context: Context, tmp_path: Path) -> None:
        context.train.report_training_metrics(4, {"loss": 1.0})
        with context.checkpoint.store_path({"steps_completed": 4, "note": "first"}) as (path, first):
            (path / "model").mkdir()
            (path / "model" / "weights.txt").write_text("4")
        source = tmp_path / "source"
        source.mkdir()
        (source / "keep.txt").write_text("kept")
        (source / "leave.txt").write_text("left")
        context.train.report_training_metrics(5, {"loss": 1.0})
        second = context.checkpoint.upload(source, selector=lambda name: name == "keep.txt")

        with context.checkpoint.restore_path(first) as path:
            assert (path / "model" / "weights.txt").read_text() == "4"
        target = tmp_path / "target"
        target.mkdir()
        (target / "own.txt").write_text("own")
        context.checkpoint.download(second, target)
        assert {file.name: file.read_text() for file in target.iterdir()} == {"keep.txt": "kept", "own.txt": "own"}
        assert (source / "leave.txt").read_text() == "left"
        assert context.checkpoint.get_metadata(first) == {"steps_completed": 4, "note": "first"}
        assert context.checkpoint.get_metadata(second) == {"steps_completed": 5}

        context.checkpoint.delete(second)
        with pytest.raises(CheckpointNotFoundError):
            context.checkpoint.get_metadata(second)
        context.close()
        assert door.checkpoints() == [(first, 4)]

    def test_a_block_that_fails_leaves_no_checkpoint(self, door: Door, context: Context) -> None:
        folders = []

        def fail() -> None:
            with context.checkpoint.store_path() as (path, _):
                (path / "part").write_text("x")
                folders.append(path)
                raise RuntimeError("in the middle")

        with pytest.raises(RuntimeError, match="in the middle"):
            fail()
        context.close()
        assert not folders[0].exists()
        assert door.checkpoints() == []

    def test_a_search_gets_the_metric_of_its_operation(self, door: Door, context: Context) -> None:
        for operation in context.searcher.operations():
            context.train.report_training_metrics(7, {"loss": 2.0})
            operation.report_progress(operation.length / 2)
            operation.report_completed(0.5)
        context.close()
        assert door.rows("validation") == [{"batch": 7, "loss": 0.5}]

    def test_the_best_validation_so_far(self, context: Context) -> None:
        assert context.train.get_experiment_best_validation() is None
        for step, value in enumerate((3.0, 1.0, 2.0), 1):
            context.train.report_validation_metrics(step, {"loss": value})
        assert context.train.get_experiment_best_validation() == 1.0

    def test_event_files_have_a_folder(self, context: Context) -> None:
        assert context.train.get_tensorboard_path().is_dir()
