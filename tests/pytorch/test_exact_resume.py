"""Wherever a training is stopped and continued, it ends with the same bits: stops, kills and configurations drawn."""

from __future__ import annotations

import functools
import json
import os
import random
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.utils.data as torch_data
from det_harness.trial import state_files
from digits_trials import Digits, DigitsTrial, LocalRun, same
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import nn
from torch.optim import lr_scheduler
from tries import draw

from det_native.pytorch import DataLoader, LRScheduler, PyTorchCallback, PyTorchTrial, PyTorchTrialContext
from det_native.schema.manifests import CheckpointManifest

pytestmark = pytest.mark.slow

BATCHES = 20
EPOCH = 8  # of 110 records in batches of 15


@dataclass(frozen=True)
class Kind:
    """What a trial is made of."""

    data: str = "shuffled"
    workers: int = 0
    aggregation: int = 1
    precision: str = "float32"
    validation: int = 0


class Moods(PyTorchCallback):
    """A callback whose state is of many types, drawn from generators, and changes the training."""

    def __init__(self, optimizer: torch.optim.Optimizer) -> None:
        self.optimizer = optimizer
        self.seen: Counter[str] = Counter()
        self.generator = np.random.default_rng(3)
        self.noise = torch.zeros(2, dtype=torch.bfloat16)

    def on_training_epoch_end(self, epoch_idx: int) -> None:
        self.seen[f"epoch {epoch_idx}"] += 1
        self.optimizer.param_groups[0]["momentum"] = 0.5 + self.generator.random() / 4

    def on_validation_end(self, metrics: dict[str, Any]) -> None:
        self.seen["validation"] += 1
        self.noise += torch.rand(2).to(torch.bfloat16)

    def state_dict(self) -> dict[str, Any]:
        return vars(self) | {"optimizer": None}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        vars(self).update(state_dict | {"optimizer": self.optimizer})


class Stream(torch_data.IterableDataset[Any]):
    """The digits as a stream, through a buffer that shuffles them, with noise."""

    def __init__(self) -> None:
        self.digits = Digits(True, noise=0.1)

    def __len__(self) -> int:
        return 110

    def __iter__(self) -> Any:
        worker = torch_data.get_worker_info()
        first, step = (0, 1) if worker is None else (worker.id, worker.num_workers)
        buffer: list[Any] = []
        for index in range(first, 110, step):
            buffer.append(self.digits[index])
            if len(buffer) > 20:
                yield buffer.pop(random.randrange(len(buffer)))
        yield from buffer


class EverythingTrial(PyTorchTrial):
    """Two optimizers, a scheduler in each mode, dropout, a reducer, a stateful callback; data and precision vary."""

    def __init__(self, context: PyTorchTrialContext) -> None:
        self.context = context
        self.kind: Kind = context.get_hparam("kind")
        self.model = context.wrap_model(
            nn.Sequential(nn.Linear(64, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.3), nn.Linear(16, 10))
        )
        self.head = context.wrap_model(nn.Linear(10, 10))
        self.sgd = context.wrap_optimizer(torch.optim.SGD(self.model.parameters(), lr=0.05, momentum=0.9))
        self.adam = context.wrap_optimizer(torch.optim.AdamW(self.head.parameters(), lr=1e-2))
        self.scaler: Any = None
        if self.kind.precision == "apex":
            context.configure_apex_amp(
                [self.model, self.head], [self.sgd, self.adam], cast_model_type=torch.float16, num_losses=2
            )
            for scaler in context.scalers:
                scaler.set_growth_interval(3)
        elif self.kind.precision == "scaler":
            self.scaler = context.wrap_scaler(torch.amp.GradScaler("cpu", init_scale=2.0**30, growth_interval=2))
        modes = LRScheduler.StepMode
        context.wrap_lr_scheduler(lr_scheduler.StepLR(self.sgd, 1, gamma=0.8), modes.STEP_EVERY_EPOCH)
        context.wrap_lr_scheduler(lr_scheduler.OneCycleLR(self.adam, 0.02, total_steps=40), modes.STEP_EVERY_BATCH)
        self.by_hand = context.wrap_lr_scheduler(
            lr_scheduler.LambdaLR(self.sgd, lambda step: 1 / (1 + step / 9)), modes.MANUAL_STEP
        )
        self.mean = context.experimental.wrap_reducer(np.mean, name="mean")

    def build_training_data_loader(self) -> Any:
        kind = self.kind
        if kind.data == "stream":
            return DataLoader(Stream(), batch_size=15, num_workers=kind.workers)
        dataset = torch_data.Subset(Digits(True, noise=0.1), range(110))
        if kind.data == "weighted":
            sampler = torch_data.WeightedRandomSampler([1.0, 3.0] * 55, 110)
            return torch_data.DataLoader(dataset, batch_size=15, sampler=sampler, num_workers=kind.workers)
        return DataLoader(dataset, batch_size=15, shuffle=True, num_workers=kind.workers)

    def build_validation_data_loader(self) -> DataLoader:
        return DataLoader(torch_data.Subset(Digits(False, noise=0.1), range(25)), batch_size=10)

    def build_callbacks(self) -> dict[str, PyTorchCallback]:
        return {"moods": Moods(self.sgd)}

    def train_batch(self, batch: Any, epoch_idx: int, batch_idx: int) -> dict[str, Any]:
        DigitsTrial.done = batch_idx + 1
        images, labels = batch
        with torch.autocast("cpu", dtype=torch.float16, enabled=self.scaler is not None):
            output = self.head(self.model(images * (1 + 0.1 * random.random())))
            losses = nn.functional.cross_entropy(output, labels), output.float().pow(2).mean() * 0.01
        for number, loss in enumerate(losses):
            scaled = loss if self.scaler is None else self.scaler.scale(loss)
            self.context.backward(scaled, retain_graph=number == 0)
        for optimizer in (self.sgd, self.adam):
            self.context.step_optimizer(
                optimizer, clip_grads=lambda found: nn.utils.clip_grad_norm_(found, 1.0), scaler=self.scaler
            )
        if self.scaler is not None and (batch_idx + 1) % self.kind.aggregation == 0:
            self.scaler.update()
        if batch_idx % 3 == 2:
            self.by_hand.step()
        self.mean.update(losses[0].item())
        rates = self.sgd.param_groups[0]["lr"], self.adam.param_groups[0]["lr"]
        return {"loss": losses[0], "epoch": epoch_idx, "first": self.context.is_epoch_start(), "lr": sum(rates)}

    def evaluate_batch(self, batch: Any) -> dict[str, Any]:
        images, labels = batch
        self.mean.update(float(images[0, 0]))
        return {"loss": nn.functional.cross_entropy(self.head(self.model(images)), labels)}


class KilledError(BaseException):
    """Ends a run as abruptly as an exception can."""


def made(folder: Path, kind: Kind, checkpoints: int = 0) -> LocalRun:
    return LocalRun(
        folder,
        batches=BATCHES,
        hparams={"kind": kind},
        optimizations={"aggregation_frequency": kind.aggregation},
        min_validation_period={"batches": kind.validation},
        min_checkpoint_period={"batches": checkpoints},
    )


def killed_at(batch: int) -> type[PyTorchTrial]:
    class Killed(EverythingTrial):
        def train_batch(self, batch_: Any, epoch_idx: int, batch_idx: int) -> dict[str, Any]:
            if batch_idx == batch:
                raise KilledError
            return super().train_batch(batch_, epoch_idx, batch_idx)

    return Killed


def result(run: LocalRun) -> dict[str, Any]:
    """Return everything that a finished run leaves: its last checkpoint, and its rows, the last of each batch."""
    folder = Path(run.storage.uri) / run.last().uuid
    with np.load(folder / "rng.npz") as archive:
        generators = {name: archive[name].tolist() for name in archive.files}
    callbacks = state_files.load(folder, "callbacks")
    mood = callbacks["moods"]
    return {
        "state": run.state(),
        "schedulers": state_files.load(folder, "schedulers"),
        "scalers": state_files.load(folder, "scalers"),
        "callbacks": [mood["seen"], mood["noise"], mood["generator"].bit_generator.state],
        "generators": generators,
        "position": json.loads((folder / "state.json").read_text())["position"],
        "training": {row.batch: row.metrics for row in run.reporter.training_rows},
        "validation": {row.batch: row.metrics for row in run.reporter.validation_rows},
    }


@functools.cache
def uninterrupted(kind: Kind) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        run = made(Path(folder), kind)
        run.run(EverythingTrial)
        found = result(run)
    assert sorted(found["training"]) == list(range(1, BATCHES + 1))
    return found


def differences(first: Any, second: Any, path: str = "") -> list[str]:
    """Return the places where two results differ."""
    if isinstance(first, dict) and isinstance(second, dict) and first.keys() == second.keys():
        return [place for key in first for place in differences(first[key], second[key], f"{path}/{key}")]
    if isinstance(first, list | tuple) and len(first) == len(second):
        return [
            place
            for index, (a, b) in enumerate(zip(first, second, strict=True))
            for place in differences(a, b, f"{path}/{index}")
        ]
    return [] if same(first, second) else [path]


def spoil_the_generators() -> None:
    random.seed(99)
    np.random.seed(99)
    torch.manual_seed(99)


KINDS = st.builds(
    Kind,
    data=st.sampled_from(["shuffled", "weighted", "stream"]),
    workers=st.sampled_from([0, 0, 2]),
    aggregation=st.sampled_from([1, 3]),
    precision=st.sampled_from(["float32", "apex", "scaler"]),
    validation=st.sampled_from([0, 6]),
)


def check_stops(kind: Kind, stops: list[int]) -> None:
    """Stop a training after each of these batches and continue it."""
    expected = uninterrupted(kind)
    with tempfile.TemporaryDirectory() as folder:
        run = made(Path(folder), kind)
        resume: CheckpointManifest | None = None
        for stop in stops:
            outcome = run.run(EverythingTrial, resume=resume, stop_at=stop)
            assert (outcome.batches, outcome.stopped) == (stop, True)
            resume = run.last()
            spoil_the_generators()
        run.run(EverythingTrial, resume=resume)
        assert differences(result(run), expected) == []


def check_kill(kind: Kind, period: int, batch: int) -> None:
    """Kill a training in a batch and continue it from its last checkpoint."""
    expected = uninterrupted(kind)
    with tempfile.TemporaryDirectory() as folder:
        run = made(Path(folder), kind, checkpoints=period)
        with pytest.raises(KilledError):
            run.run(killed_at(batch))
        assert run.checkpoints is not None
        run.checkpoints.wait()  # as everybody does who runs a trial, whatever ended it
        spoil_the_generators()
        run.run(EverythingTrial, resume=run.last() if run.reporter.checkpoints else None)
        assert differences(result(run), expected) == []


# Between them, every value of every field of a kind.
@pytest.mark.parametrize(
    ("kind", "stops"),
    [
        (Kind("stream", 2, 3, "scaler", 6), [7, 8, 17]),
        (Kind("shuffled", 2, 3, "apex", 6), [6, 8]),
        pytest.param(Kind("weighted", 0, 1, "float32", 0), [1, 19], marks=pytest.mark.long),
    ],
)
def test_stops_change_nothing(kind: Kind, stops: list[int]) -> None:
    check_stops(kind, stops)


@pytest.mark.parametrize(
    ("kind", "period", "batch"),
    [
        pytest.param(Kind("stream", 0, 3, "apex", 6), 5, 13, marks=pytest.mark.long),
        (Kind("weighted", 0, 1, "float32", 0), 9, 4),
    ],
)
def test_a_kill_after_a_checkpoint_changes_nothing(kind: Kind, period: int, batch: int) -> None:
    check_kill(kind, period, batch)


STOPS = st.lists(st.integers(1, BATCHES - 1), min_size=1, max_size=3, unique=True).map(sorted)
SOME = settings(max_examples=20, suppress_health_check=list(HealthCheck))
MANY = int(os.environ.get("DET_SOAK_STOPS", "1000"))


@pytest.mark.long
@SOME
@given(kind=KINDS, stops=STOPS)
def test_stops_that_are_drawn_change_nothing(kind: Kind, stops: list[int]) -> None:
    check_stops(kind, stops)


@pytest.mark.long
@SOME
@given(kind=KINDS, period=st.integers(2, 9), batch=st.integers(1, BATCHES - 1))
def test_a_kill_that_is_drawn_changes_nothing(kind: Kind, period: int, batch: int) -> None:
    check_kill(kind, period, batch)


@pytest.mark.soak
@pytest.mark.timeout(6 * 3600)
def test_many_stops_change_nothing() -> None:
    draw("trainings in PyTorch stopped at drawn batches", MANY, check_stops, kind=KINDS, stops=STOPS)


@pytest.mark.soak
@pytest.mark.timeout(6 * 3600)
def test_many_kills_change_nothing() -> None:
    periods, batches = st.integers(2, 9), st.integers(1, BATCHES - 1)
    draw("trainings in PyTorch killed in drawn batches", MANY, check_kill, kind=KINDS, period=periods, batch=batches)


def test_the_parts_that_are_compared_are_at_work() -> None:
    found = uninterrupted(Kind("stream", 0, 1, "scaler", 6))
    rates = [found["training"][batch]["lr"] for batch in range(1, BATCHES + 1)]
    assert len(set(rates)) == BATCHES
    assert found["scalers"][0]["scale"] < 2.0**30
    assert found["callbacks"][0] == {"epoch 0": 1, "epoch 1": 1, "validation": 3}
    assert found["position"] == [2, 4]
    assert [batch for batch, row in found["training"].items() if row["first"]] == [1, 1 + EPOCH, 1 + 2 * EPOCH]
    assert {batch for batch, row in found["training"].items() if "mean" in row} == {6, 10, 12, 18, 20}
    other = uninterrupted(Kind("stream", 0, 1, "float32", 6))
    assert not same(found["state"]["models_state_dict"], other["state"]["models_state_dict"])
