"""Custom reducers: functions and objects, for training and validation, over stops, and their errors."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sklearn.metrics
import torch
from det_harness.frameworks.torch.reduction import Reduction
from det_harness.ranks.communicator import OneProcess
from digits_trials import DigitsTrial, LocalRun
from torch import nn

from det_native import pytorch
from det_native.errors import ArgumentError, ReducerError, TrialDefinitionError
from det_native.pytorch import PyTorchTrialContext, Reducer
from det_native.pytorch.experimental import PyTorchExperimentalContext

pytestmark = pytest.mark.slow


class MyAvgMetricReducer(pytorch.MetricReducer):
    """The example of the documents."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self.sum = 0
        self.counts = 0

    def update(self, value: Any) -> None:
        self.sum += sum(value)
        self.counts += 1

    def per_slot_reduce(self) -> Any:
        return self.sum, self.counts

    def cross_slot_reduce(self, per_slot_metrics: Any) -> Any:
        sums, counts = zip(*per_slot_metrics, strict=True)
        return sum(sums) / sum(counts)


def roc_auc_reducer(values: Any) -> Any:
    """The example of the documents, for the question whether a digit is a 3."""
    y_trues, y_scores = zip(*values, strict=True)
    return sklearn.metrics.roc_auc_score(np.concatenate(y_trues), np.concatenate(y_scores))


class ReducedTrial(DigitsTrial):
    def __init__(self, context: PyTorchTrialContext) -> None:
        super().__init__(context)
        self.my_avg = context.experimental.wrap_reducer(MyAvgMetricReducer(), name="my_avg")
        self.places = context.experimental.wrap_reducer(self.first_and_last, for_validation=False)
        self.roc_auc = context.experimental.wrap_reducer(roc_auc_reducer, name="roc_auc", for_training=False)

    @staticmethod
    def first_and_last(values: list[int]) -> dict[str, Any]:
        return {"first": values[0], "last": values[-1], "count": len(values)}

    def train_batch(self, batch: Any, epoch_idx: int, batch_idx: int) -> dict[str, Any]:
        self.my_avg.update([batch_idx])
        self.places.update(batch_idx)
        return super().train_batch(batch, epoch_idx, batch_idx)

    def evaluate_batch(self, batch: Any) -> dict[str, Any]:
        images, labels = batch
        scores = self.other(self.model(images)).softmax(1)[:, 3]
        self.roc_auc.update(((labels == 3).cpu().numpy(), scores.cpu().numpy()))
        self.my_avg.update([len(images)])
        return {"loss": scores.mean()}


def training_of(run: LocalRun, *names: str) -> dict[int, list[float]]:
    return {
        row.batch: [row.metrics[name] for name in names]
        for row in run.reporter.training_rows
        if names[0] in row.metrics
    }


def test_training_is_reduced_by_workload_and_validation_as_a_whole(tmp_path: Path) -> None:
    run = LocalRun(tmp_path, batches=25, min_validation_period={"batches": 8})
    run.run(ReducedTrial)
    assert training_of(run, "first", "last", "count", "my_avg") == {
        8: [0, 7, 8, 3.5],
        10: [8, 9, 2, 8.5],
        16: [10, 15, 6, 12.5],
        20: [16, 19, 4, 17.5],
        24: [20, 23, 4, 21.5],
        25: [24, 24, 1, 24.0],
    }
    last = run.reporter.validation_rows[-1].metrics
    assert last["my_avg"] == 99.0
    assert last["roc_auc"] > 0.9
    assert "first" not in last


@pytest.mark.parametrize("stop", [5, *(pytest.param(stop, marks=pytest.mark.long) for stop in (8, 13, 20))])
def test_a_stop_inside_a_workload_changes_nothing(tmp_path: Path, stop: int) -> None:
    made = {"batches": 25, "min_validation_period": {"batches": 8}}
    whole, parts = LocalRun(tmp_path / "whole", **made), LocalRun(tmp_path / "parts", **made)
    whole.run(ReducedTrial)
    parts.run(ReducedTrial, stop_at=stop)
    parts.run(ReducedTrial, resume=parts.last())
    assert parts.reporter.training_rows == whole.reporter.training_rows
    assert parts.reporter.validation_rows == whole.reporter.validation_rows


def test_reducers_alone_are_enough(tmp_path: Path) -> None:
    class Alone(ReducedTrial):
        def build_callbacks(self) -> dict[str, Any]:
            return {}

        def train_batch(self, batch: Any, epoch_idx: int, batch_idx: int) -> dict[str, Any]:
            super().train_batch(batch, epoch_idx, batch_idx)
            return {}

        def evaluate_batch(self, batch: Any) -> dict[str, Any]:
            super().evaluate_batch(batch)
            return {}

    run = LocalRun(
        tmp_path, batches=10, searcher={"name": "single", "metric": "roc_auc", "max_length": {"batches": 10}}
    )
    run.run(Alone)
    assert [row.batch for row in run.reporter.training_rows] == [10]
    assert set(run.reporter.validation_rows[0].metrics) == {"my_avg", "roc_auc"}


def test_one_that_is_computed_over_several_slots() -> None:
    class TwoSlots(OneProcess):
        def all_gather_object(self, value: Any) -> list[Any]:
            other = [replace(part, value=found) for part, found in zip(value[0], ([6], (30, 3)), strict=True)]
            return [value, [other]]

    context = PyTorchExperimentalContext()
    total = context.wrap_reducer(sum, name="total")
    mean = context.wrap_reducer(MyAvgMetricReducer(), name="mean")
    reduction = Reduction(context.reducers, TwoSlots())
    for value in (1, 2):
        total.update(value)
        mean.update([value])
    assert reduction.reduce() == {"total": 9, "mean": 33 / 5}
    reduction.reset()
    assert reduction.reduce() == {"total": 6, "mean": 10.0}


def test_what_it_keeps_is_data_not_objects() -> None:
    class Keeps(MyAvgMetricReducer):
        def __init__(self, model: nn.Module) -> None:
            super().__init__()
            self.model = model
            self.seen = [torch.ones(2), {"a": np.arange(3)}]

    first, second = nn.Linear(1, 1), nn.Linear(1, 1)
    context, other = PyTorchExperimentalContext(), PyTorchExperimentalContext()
    context.wrap_reducer(Keeps(first), name="one").update([5])
    restored = other.wrap_reducer(Keeps(second), name="one")
    state = Reduction(context.reducers, OneProcess()).state()
    assert set(state[0]) == {"sum", "counts", "seen"}
    Reduction(other.reducers, OneProcess()).restore(state)
    assert (restored.sum, restored.counts, restored.model) == (5, 1, second)


@pytest.mark.parametrize(
    ("function", "name", "words"),
    [
        (lambda values: {"a": 1}, "one", r'type <lambda> for name="one".*with name set but it returned a dict anyway'),
        (lambda values: 1, None, r"type <lambda> for name=None.*name=None but it did not return a dict"),
        (lambda values: 1 / 0, "one", r'for name="one" failed in a call to cross_slot_reduce\(\): division by zero'),
    ],
)
def test_errors_name_the_reducer(tmp_path: Path, function: Any, name: Any, words: str) -> None:
    class Broken(ReducedTrial):
        def __init__(self, context: PyTorchTrialContext) -> None:
            super().__init__(context)
            self.broken = context.experimental.wrap_reducer(function, name)

        def train_batch(self, batch: Any, epoch_idx: int, batch_idx: int) -> dict[str, Any]:
            self.broken.update(1)
            return super().train_batch(batch, epoch_idx, batch_idx)

    with pytest.raises(ReducerError, match=words):
        LocalRun(tmp_path, batches=2).run(Broken)


def test_a_method_that_fails_is_named_and_its_error_is_the_cause() -> None:
    class Broken(MyAvgMetricReducer):
        def per_slot_reduce(self) -> Any:
            raise KeyError("gone")

    context = PyTorchExperimentalContext()
    context.wrap_reducer(Broken(), name="b")
    with pytest.raises(ValueError, match=r'type Broken for name="b" failed in a call to per_slot_reduce') as caught:
        Reduction(context.reducers, OneProcess()).reduce()
    assert isinstance(caught.value.__cause__, KeyError)


def test_wrapping_is_checked() -> None:
    context = PyTorchExperimentalContext("MyTrial")
    reducer = context.wrap_reducer(MyAvgMetricReducer(), name="one")
    assert isinstance(reducer, MyAvgMetricReducer)
    with pytest.raises(ArgumentError, match=r"^MyTrial: this MyAvgMetricReducer is wrapped already"):
        context.wrap_reducer(reducer, name="two")
    with pytest.raises(ArgumentError, match="not int"):
        context.wrap_reducer(3)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="the class MyAvgMetricReducer"):
        context.wrap_reducer(MyAvgMetricReducer)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="its own name"):
        context.wrap_reducer(len, name="one")
    with pytest.raises(ArgumentError, match="text or None"):
        context.wrap_reducer(len, name=1)  # type: ignore[arg-type]


@pytest.mark.parametrize("method", ["train_batch", "evaluate_batch"])
def test_a_metric_has_one_source(tmp_path: Path, method: str) -> None:
    class Twice(ReducedTrial):
        pass

    setattr(
        Twice,
        method,
        lambda self, *arguments: {**getattr(ReducedTrial, method)(self, *arguments), "my_avg": 1.0},
    )
    with pytest.raises(TrialDefinitionError, match=rf"Twice.{method}\(\) returned the metric 'my_avg'"):
        LocalRun(tmp_path, batches=2).run(Twice)


def test_the_old_mean_of_batches_is_there(tmp_path: Path) -> None:
    class Sizes(DigitsTrial):
        def evaluation_reducer(self) -> Any:
            return {"loss": Reducer.AVG, "old": Reducer.AVG_OF_BATCHES}

        def evaluate_batch(self, batch: Any) -> dict[str, Any]:
            return dict.fromkeys(("loss", "old"), float(len(batch[0])))

    run = LocalRun(tmp_path, batches=1)
    run.run(Sizes)
    metrics = run.reporter.validation_rows[0].metrics
    assert metrics["old"] == 99.0
    assert metrics["loss"] == pytest.approx((100 * 100 + 100 * 100 + 97 * 97) / 297)


def test_a_batch_of_another_kind_says_its_length(tmp_path: Path) -> None:
    class Words(DigitsTrial):
        def build_validation_data_loader(self) -> Any:
            return torch.utils.data.DataLoader([["a", "b"], ["c"]], batch_size=None)  # type: ignore[arg-type]

        def evaluate_batch(self, batch: Any) -> dict[str, Any]:
            return {"loss": float(len(batch))}

    with pytest.raises(TrialDefinitionError, match=r"override Words.get_batch_length\(batch\)"):
        LocalRun(tmp_path, batches=1).run(Words)
    run = LocalRun(tmp_path, batches=1)
    run.run(type("Told", (Words,), {"get_batch_length": lambda self, batch: len(batch)}))
    assert run.reporter.validation_rows[0].metrics["loss"] == pytest.approx(5 / 3)


class AsInTheDocument(ReducedTrial):
    """Each reducer is wrapped for both kinds of workload, and given values in one."""

    def __init__(self, context: PyTorchTrialContext) -> None:
        DigitsTrial.__init__(self, context)
        self.my_avg = context.experimental.wrap_reducer(MyAvgMetricReducer(), name="my_avg")
        self.roc_auc = context.experimental.wrap_reducer(roc_auc_reducer, name="roc_auc")
        self.total = context.experimental.wrap_reducer(sum, name="total")

    def train_batch(self, batch: Any, epoch_idx: int, batch_idx: int) -> dict[str, Any]:
        self.my_avg.update([batch_idx])
        self.total.update(1)
        return DigitsTrial.train_batch(self, batch, epoch_idx, batch_idx)

    def evaluate_batch(self, batch: Any) -> dict[str, Any]:
        images, labels = batch
        scores = self.other(self.model(images)).softmax(1)[:, 3]
        self.roc_auc.update(((labels == 3).cpu().numpy(), scores.cpu().numpy()))
        return {"loss": scores.mean()}


def test_one_that_is_given_nothing_in_a_workload_has_no_metric_there(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", logger="det_harness")
    run = LocalRun(tmp_path, batches=20, min_validation_period={"batches": 10})
    run.run(AsInTheDocument)
    assert training_of(run, "my_avg", "total") == {10: [4.5, 10], 20: [14.5, 10]}
    assert all("roc_auc" not in row.metrics for row in run.reporter.training_rows)
    assert [set(row.metrics) for row in run.reporter.validation_rows] == [{"loss", "roc_auc", "total"}] * 2
    said = [line for line in caplog.messages if "was given nothing" in line]
    assert len(said) == 2, "once for each reducer and kind of workload; a sum of nothing is a number"
    assert 'for name="roc_auc" was given nothing in training' in said[0]
    assert "for_training=False" in said[0]


def test_an_error_of_one_that_was_given_values_is_an_error(tmp_path: Path) -> None:
    class Fails(ReducedTrial):
        @staticmethod
        def first_and_last(values: list[int]) -> dict[str, Any]:
            return {"first": values[1000]}

    with pytest.raises(ReducerError, match=r"failed in a call to cross_slot_reduce\(\): list index out of range"):
        LocalRun(tmp_path, batches=10).run(Fails)


class Words(ReducedTrial):
    name = "words"

    def __init__(self, context: PyTorchTrialContext) -> None:
        super().__init__(context)
        self.words = context.experimental.wrap_reducer(lambda values: ["abc"], name=self.name, for_training=False)

    def evaluate_batch(self, batch: Any) -> dict[str, Any]:
        self.words.update(1)
        metrics = super().evaluate_batch(batch)
        return {name: value for name, value in metrics.items() if name != self.name}


def test_what_is_no_number_is_recorded_of_a_reducer(tmp_path: Path) -> None:
    run = LocalRun(tmp_path, batches=10)
    run.run(Words)
    assert run.reporter.validation_rows[-1].metrics["words"] == ["abc"]


def test_what_is_no_number_is_said_of_the_reducer_of_the_searchers_metric(tmp_path: Path) -> None:
    words = r"A reducer of wrap_reducer\(\) returned \['abc'\] for the searcher's metric 'loss'"
    with pytest.raises(TrialDefinitionError, match=words):
        LocalRun(tmp_path, batches=10).run(type("Words", (Words,), {"name": "loss"}))
