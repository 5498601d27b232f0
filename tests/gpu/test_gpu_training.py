"""A PyTorchTrial on a GPU: where its tensors are, what it waits for, how it stops and goes on, and in which types."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from det_harness.frameworks.torch import trial_state
from det_harness.frameworks.torch.host_copy import HostMemory
from digits_trials import Digits, DigitsTrial, Full, LocalRun, same
from torch import nn

from det_native.pytorch import DataLoader, MetricReducer, PyTorchCallback, PyTorchTrialContext

pytestmark = [pytest.mark.slow, pytest.mark.cuda]

BATCHES = 60
STOPS = [1, 13, 24, 41]  # an epoch is 24 batches


class Placed(DigitsTrial):
    """Notes where it finds its tensors."""

    found: set[str]

    def __init__(self, context: PyTorchTrialContext) -> None:
        super().__init__(context)
        type(self).found = {one.device.type for one in self.model.parameters()}

    def train_batch(self, batch: Any, epoch_idx: int, batch_idx: int) -> dict[str, Any]:
        self.found.update(one.device.type for one in batch)
        return super().train_batch(batch, epoch_idx, batch_idx)

    def evaluate_batch(self, batch: Any) -> dict[str, Any]:
        self.found.update(one.device.type for one in batch)
        return super().evaluate_batch(batch)


class Apex(DigitsTrial):
    """Mixed precision by the old call, with a scale that moves within the training."""

    level = "O1"

    def __init__(self, context: PyTorchTrialContext) -> None:
        super().__init__(context)
        context.configure_apex_amp([self.model, self.other], [self.optimizer, self.adam], opt_level=self.level)
        for scaler in context.scalers:
            scaler.set_growth_interval(7)


class ForwardsOnly(Apex):
    level = "O2"


class HalfWeights(Apex):
    """Weights of float16, where Adam's usual epsilon is zero."""

    level = "O3"

    def __init__(self, context: PyTorchTrialContext) -> None:
        super().__init__(context)
        for group in self.adam.param_groups:
            group["eps"] = 1e-4


class Scaled(DigitsTrial):
    """Mixed precision as it is written today."""

    def __init__(self, context: PyTorchTrialContext) -> None:
        super().__init__(context)
        self.scaler = context.wrap_scaler(torch.amp.GradScaler("cuda", init_scale=2.0**20, growth_interval=5))

    def train_batch(self, batch: Any, epoch_idx: int, batch_idx: int) -> dict[str, Any]:
        DigitsTrial.done = batch_idx + 1
        images, labels = batch
        with torch.autocast("cuda", torch.float16):
            output = self.other(self.model(images))
            loss = nn.functional.cross_entropy(output, labels)
        self.context.backward(self.scaler.scale(loss))
        self.context.step_optimizer(self.optimizer, scaler=self.scaler, auto_zero_grads=False)
        self.context.step_optimizer(self.adam, scaler=self.scaler)
        self.optimizer.zero_grad()
        self.scaler.update()
        return {"loss": loss, "scale": self.scaler.get_scale()}


def test_model_and_batches_are_on_the_gpu(tmp_path: Path) -> None:
    run = LocalRun(tmp_path, batches=240)
    run.run(Placed)
    assert Placed.found == {"cuda"}
    [*_, last] = run.reporter.validation_rows
    assert last.metrics["accuracy"] > 0.9
    rows = run.reporter.training_rows
    assert [row.batch for row in rows] == list(range(1, 241))
    assert all(type(value) in (float, int) for row in rows for value in row.metrics.values())


@pytest.mark.parametrize("trial_class", [DigitsTrial, Apex, ForwardsOnly, HalfWeights, Scaled])
@pytest.mark.usefixtures("deterministic")
def test_the_end_is_the_same_wherever_it_stopped(tmp_path: Path, trial_class: type[DigitsTrial]) -> None:
    whole = LocalRun(tmp_path / "whole", batches=BATCHES)
    whole.run(trial_class)
    expected = whole.state()
    again = LocalRun(tmp_path / "again", batches=BATCHES)
    again.run(trial_class)
    assert same(again.state(), expected), "the GPU itself computes other bits each time"
    for stop in STOPS:
        parts = LocalRun(tmp_path / str(stop), batches=BATCHES)
        assert parts.run(trial_class, stop_at=stop).stopped
        torch.cuda.manual_seed_all(99)
        parts.run(trial_class, resume=parts.last())
        assert same(parts.state(), expected), stop
        told = [(row.batch, row.metrics) for row in parts.reporter.training_rows]
        assert same(told, [(row.batch, row.metrics) for row in whole.reporter.training_rows])


@pytest.mark.parametrize(("trial_class", "scalers"), [(Apex, 1), (ForwardsOnly, 1), (HalfWeights, 0), (Scaled, 1)])
def test_half_precision_learns(tmp_path: Path, trial_class: type[DigitsTrial], scalers: int) -> None:
    kinds: set[torch.dtype] = set()

    class Watched(trial_class):  # type: ignore[valid-type, misc]
        def __init__(self, context: PyTorchTrialContext) -> None:
            super().__init__(context)
            self.model[0].register_forward_hook(lambda module, inputs, output: kinds.add(output.dtype))

    run = LocalRun(tmp_path, batches=240)
    run.run(Watched)
    assert torch.float16 in kinds
    assert run.reporter.validation_rows[-1].metrics["accuracy"] > 0.85
    run.storage.fetch(run.last().uuid, tmp_path / "fetched")
    saved = trial_state.read(tmp_path / "fetched").get("scalers_state_dict", [])
    assert len(saved) == scalers
    assert all(one["scale"] > 0 for one in saved)


class Unwatched(DigitsTrial):
    """Anything that waits for the GPU is an error, but for what this trial does itself and what is due at a report."""

    def build_training_data_loader(self) -> DataLoader:
        return DataLoader(Digits(True), batch_size=50, shuffle=True, pin_memory=True)

    def build_callbacks(self) -> dict[str, PyTorchCallback]:
        return {}

    def train_batch(self, batch: Any, epoch_idx: int, batch_idx: int) -> dict[str, Any]:
        torch.cuda.set_sync_debug_mode("default")
        images, labels = batch
        output = self.other(self.model(images))
        loss = nn.functional.cross_entropy(output, labels)
        if batch_idx + 1 not in self.reported:
            torch.cuda.set_sync_debug_mode("error")
        self.context.backward(loss)
        self.context.step_optimizer(self.optimizer)
        self.context.step_optimizer(self.adam)
        return {"loss": loss, "accuracy": (output.argmax(1) == labels).float().mean()}

    reported: frozenset[int] = frozenset()


@pytest.fixture
def _waits_allowed() -> Iterator[None]:
    yield
    torch.cuda.set_sync_debug_mode("default")


@pytest.mark.usefixtures("_waits_allowed")
def test_nothing_waits_for_the_gpu_between_two_reports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from det_harness.frameworks.torch import recorder

    real = recorder.TrainingRecorder.report
    reports: list[int] = []

    def report(self: Any, *arguments: Any, **named: Any) -> None:
        torch.cuda.set_sync_debug_mode("default")
        reports.append(DigitsTrial.done)
        real(self, *arguments, **named)

    monkeypatch.setattr(recorder.TrainingRecorder, "report", report)
    run = LocalRun(tmp_path, batches=300, scheduling_unit=100)
    run.run(Unwatched)
    assert len(run.reporter.training_rows) == 300
    assert len(reports) < 100


class WithReducers(DigitsTrial):
    """Gives tensors of the GPU to a function and to a reducer of its own."""

    def __init__(self, context: PyTorchTrialContext) -> None:
        super().__init__(context)
        self.largest = context.experimental.wrap_reducer(_largest, name="largest")
        self.total = context.experimental.wrap_reducer(Total(), name="total")

    def evaluate_batch(self, batch: Any) -> dict[str, Any]:
        _, labels = batch
        self.largest.update(labels.max())
        self.total.update(labels)
        return super().evaluate_batch(batch)


def _largest(values: list[Any]) -> Any:
    return max(values)


class Total(MetricReducer):
    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self.sum: Any = 0

    def update(self, value: torch.Tensor) -> None:
        self.sum = self.sum + value.sum()

    def per_slot_reduce(self) -> Any:
        return self.sum

    def cross_slot_reduce(self, per_slot_metrics: list[Any]) -> Any:
        return sum(per_slot_metrics)


def test_reducers_take_tensors_of_the_gpu(tmp_path: Path) -> None:
    run = LocalRun(tmp_path, batches=10)
    run.run(WithReducers)
    labels = Digits(False).labels
    metrics = run.reporter.validation_rows[-1].metrics
    assert (metrics["largest"], metrics["total"]) == (int(labels.max()), int(labels.sum()))


def test_the_whole_data_set_is_evaluated_on_the_gpu(tmp_path: Path) -> None:
    places: set[str] = set()

    class Whole(Full):
        def evaluate_full_dataset(self, data_loader: Any) -> dict[str, Any]:
            for batch in data_loader:
                images, _ = self.context.to_device(batch)
                places.add(self.model(images).device.type)
            return super().evaluate_full_dataset(data_loader)

    LocalRun(tmp_path, batches=4).run(Whole)
    assert places == {"cuda"}


_WITHOUT_GPU = """
import sys
import torch
assert not torch.cuda.is_available()
state = torch.load(sys.argv[1], weights_only=True)
assert all(one.device.type == "cpu" for one in state["models_state_dict"][0].values())
print("loaded")
"""


def test_a_copy_in_host_memory_is_complete_and_reused() -> None:
    memory = HostMemory()
    shared = torch.rand(1 << 20, device="cuda")
    state = {"a": shared, "b": [shared.view(1024, 1024), shared[::2], torch.rand(3, 5, device="cuda").t()]}
    places: list[set[int]] = []
    for number in range(3):
        shared.add_(number)
        expected = [shared.cpu(), *(one.cpu() for one in state["b"])]
        copied, lent = memory.copy(state)
        shared.zero_()
        assert all(
            torch.equal(mine, theirs) for mine, theirs in zip([copied["a"], *copied["b"]], expected, strict=True)
        )
        assert {one.locked for one in lent} == {True}
        places.append({one.storage.data_ptr() for one in lent})
        memory.give_back(lent)
        shared.copy_(expected[0])
    assert places[1:] == places[:2]


def test_where_no_memory_can_be_locked_any_other_does() -> None:
    memory = HostMemory()
    memory._lockable = 0
    source = torch.rand(1 << 16, device="cuda")
    copied, lent = memory.copy({"a": source})
    assert torch.equal(copied["a"], source.cpu())
    assert [one.locked for one in lent] == [False]


def test_a_checkpoint_is_read_where_there_is_no_gpu(tmp_path: Path) -> None:
    run = LocalRun(tmp_path, batches=4)
    run.run(DigitsTrial)
    path = next(tmp_path.rglob("state_dict.pth"))
    told = subprocess.run(
        [sys.executable, "-c", _WITHOUT_GPU, str(path)],
        env={**os.environ, "CUDA_VISIBLE_DEVICES": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert told.stdout.strip() == "loaded", told.stderr


@pytest.fixture
def _compiler(tmp_path: Path) -> Iterator[None]:
    """Keep what the compilers write in the test's folder, and what they put into the environment out of it."""
    before = dict(os.environ)
    os.environ |= {"TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "inductor"), "TRITON_CACHE_DIR": str(tmp_path / "triton")}
    yield
    torch._dynamo.reset()
    for name in os.environ.keys() - before.keys():
        del os.environ[name]
    os.environ.update(before)


@pytest.mark.usefixtures("_compiler")
def test_a_compiled_model_trains_on_the_gpu(tmp_path: Path) -> None:
    class Plain(DigitsTrial):
        def __init__(self, context: PyTorchTrialContext) -> None:
            super().__init__(context)
            self.model[3].p = 0.0  # type: ignore[index, union-attr]

    compiled = {"torch_compile": {"options": {"compile_threads": 1}}}
    run = LocalRun(tmp_path / "compiled", batches=40, optimizations=compiled)
    run.run(Plain)
    plain = LocalRun(tmp_path / "plain", batches=40)
    plain.run(Plain)
    losses = [[row.metrics["loss"] for row in each.reporter.training_rows] for each in (run, plain)]
    np.testing.assert_allclose(losses[0], losses[1], rtol=2e-2, atol=2e-3)
