"""The PyTorch controller on real data, in this process."""

from __future__ import annotations

import functools
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from det_harness.frameworks.torch.controller import PyTorchTrialController
from det_harness.trial import rng, state_files
from digits_trials import Counter, Digits, DigitsTrial, Full, LocalRun, config, same, with_method
from rows_reporter import train_here
from torch import nn

from det_native.errors import CheckpointError
from det_native.pytorch import DataLoader, LRScheduler, PyTorchTrialContext, Reducer

pytestmark = pytest.mark.slow


def test_it_learns_and_reports_every_batch(tmp_path: Path) -> None:
    run = LocalRun(tmp_path, batches=240, min_validation_period={"batches": 80})
    outcome = run.run(DigitsTrial)
    assert (outcome.batches, outcome.stopped) == (240, False)
    assert [row.batch for row in run.reporter.training_rows] == list(range(1, 241))
    assert [row.batch for row in run.reporter.validation_rows] == [80, 160, 240]
    assert run.reporter.validation_rows[-1].metrics["accuracy"] > 0.85
    epochs = [row.metrics["epoch"] for row in run.reporter.training_rows]
    assert epochs == [batch // 24 for batch in range(240)]
    assert run.last().batch == 240


def stops(count: int) -> list[int]:
    return random.Random(11).sample(range(1, 60), count)


MADE: dict[str, dict[str, Any]] = {
    "plain": {},
    "aggregated": {"optimizations": {"aggregation_frequency": 3}},
    "often": {"min_validation_period": {"batches": 7}, "checkpoint_policy": "all"},
    "workers": {"hparams": {"workers": 2}},
    "drop_last": {"hparams": {"drop_last": True}},
}


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], LocalRun]:
    """Return a function that trains to the end: once for each of what it may be made with."""

    @functools.cache
    def run(name: str) -> LocalRun:
        made = LocalRun(tmp_path_factory.mktemp(name), **MADE[name])
        made.run(DigitsTrial)
        return made

    return run


@pytest.mark.parametrize(
    ("name", "stop"),
    [
        ("plain", stops(5)[0]),
        ("aggregated", stops(3)[0]),
        ("often", stops(2)[0]),
        ("workers", 13),
        ("drop_last", 24),
        *(pytest.param("plain", stop, marks=pytest.mark.long) for stop in stops(5)[1:]),
        *(pytest.param("aggregated", stop, marks=pytest.mark.long) for stop in stops(3)[1:]),
        pytest.param("often", stops(2)[1], marks=pytest.mark.long),
        pytest.param("workers", 31, marks=pytest.mark.long),
    ],
)
def test_stopping_anywhere_changes_nothing(
    uninterrupted: Callable[[str], LocalRun], tmp_path: Path, name: str, stop: int
) -> None:
    whole = uninterrupted(name)
    parts = LocalRun(tmp_path, **MADE[name])
    first = parts.run(DigitsTrial, stop_at=stop)
    assert (first.batches, first.stopped) == (stop, True)
    random.seed(99), np.random.seed(99), torch.manual_seed(99)
    started: list[int] = []
    parts.run(DigitsTrial, resume=parts.last(), started=lambda batch, notice: started.append(batch))
    assert started == [stop]
    assert same(whole.state(), parts.state())
    assert whole.reporter.training_rows == parts.reporter.training_rows
    assert whole.reporter.validation_rows == parts.reporter.validation_rows


def test_a_checkpoint_is_small_whole_and_free_of_code(tmp_path: Path) -> None:
    class Large(DigitsTrial):
        def __init__(self, context: Any) -> None:
            super().__init__(context)
            self.large = context.wrap_model(nn.Linear(1000, 1000))

    run = LocalRun(tmp_path, batches=2)
    run.run(Large)
    manifest = run.last()
    state = sum(
        tensor.numel() * tensor.element_size()
        for model in run.state()["models_state_dict"]
        for tensor in model.values()
    )
    assert manifest.size <= 1.01 * (state + 2 * 4 * (64 * 32 + 32 * 12))
    names = {file.path for file in manifest.files}
    assert {"state_dict.pth", "schedulers.json", "callbacks.json", "rng.npz", "state.json", "extra.txt"} <= names
    assert not any(name.endswith((".py", ".ipynb")) for name in names)


def test_callbacks_run_in_order_and_keep_their_state(tmp_path: Path) -> None:
    kept: list[Any] = []

    class Watched(DigitsTrial):
        def __init__(self, context: Any) -> None:
            super().__init__(context)
            kept.append(self.counter)

    run = LocalRun(tmp_path, batches=20, min_validation_period={"batches": 10}, checkpoint_policy="all")
    run.run(Watched, stop_at=15)
    assert kept[0].events == ["step_start", "start", "step_end", "end"]
    run.run(Watched, resume=run.last())
    assert len(kept[1].seen) == 2
    assert kept[1].seen[0] == kept[0].seen[0]


def test_damaged_checkpoints_give_way_to_an_earlier_one(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    run = LocalRun(tmp_path, batches=40, min_checkpoint_period={"batches": 10})
    run.run(DigitsTrial)
    whole = run.state()
    manifests = [manifest for _, manifest in run.reporter.checkpoints]
    assert [manifest.batch for manifest in manifests] == [10, 20, 30, 40]
    for manifest in manifests[1:3]:
        path = tmp_path / manifest.uuid / "state_dict.pth"
        content = bytearray(path.read_bytes())
        content[len(content) // 2] ^= 1
        path.write_bytes(content)
    started: list[int] = []
    run.run(DigitsTrial, resume=manifests[2], started=lambda batch, notice: started.append(batch))
    assert started == [10]
    assert same(run.state(), whole)
    assert "state_dict.pth" in caplog.text
    assert "of batch 10 instead" in caplog.text


def test_a_local_run_leaves_the_process_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    random.seed(1), np.random.seed(1), torch.manual_seed(1)
    expected = (random.random(), np.random.rand(), torch.rand(1).item())
    random.seed(1), np.random.seed(1), torch.manual_seed(1)
    results = [
        train_here(
            lambda services: PyTorchTrialController(DigitsTrial, services),
            config=config(batches=5),
            hparams={"global_batch_size": 32},
            trial_seed=3,
            directory=tmp_path / name,
            framework="torch",
        )
        for name in ("a", "b")
    ]
    assert (random.random(), np.random.rand(), torch.rand(1).item()) == expected
    assert not results[0].interrupted.is_set()
    assert results[0].reporter.training_rows == results[1].reporter.training_rows
    assert len(results[0].reporter.checkpoints) == 1


def test_the_quick_check_is_one_of_each_and_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    result = train_here(
        lambda services: PyTorchTrialController(DigitsTrial, services),
        config=config(batches=1000),
        hparams={"global_batch_size": 32},
        trial_seed=3,
        directory=tmp_path,
        framework="torch",
        test=True,
    )
    assert [row.batch for row in result.reporter.training_rows] == [1]
    assert [row.batch for row in result.reporter.validation_rows] == [1]
    assert len(result.reporter.checkpoints) == 1
    assert "The quick check passed." in capsys.readouterr().out


def test_ctrl_c_ends_with_a_checkpoint(tmp_path: Path) -> None:
    import signal

    class Interrupted(DigitsTrial):
        def train_batch(self, batch: Any, epoch_idx: int, batch_idx: int) -> dict[str, Any]:
            if batch_idx == 6:
                signal.raise_signal(signal.SIGINT)
            return super().train_batch(batch, epoch_idx, batch_idx)

    before = signal.getsignal(signal.SIGINT)
    result = train_here(
        lambda services: PyTorchTrialController(Interrupted, services),
        config=config(batches=50),
        hparams={"global_batch_size": 32},
        trial_seed=3,
        directory=tmp_path,
        framework="torch",
    )
    assert signal.getsignal(signal.SIGINT) is before
    assert (result.outcome.batches, result.outcome.stopped, result.interrupted.is_set()) == (7, True, True)
    assert result.reporter.checkpoints[-1][1].batch == 7
    assert len(result.reporter.training_rows) == 7


def test_user_code_can_ask_for_the_end(tmp_path: Path) -> None:
    class Ends(DigitsTrial):
        def train_batch(self, batch: Any, epoch_idx: int, batch_idx: int) -> dict[str, Any]:
            if batch_idx == 3:
                self.context.set_stop_requested(True)
            return super().train_batch(batch, epoch_idx, batch_idx)

    run = LocalRun(tmp_path)
    assert run.run(Ends).batches == 4
    assert run.last().batch == 4


class Reduced(DigitsTrial):
    def evaluation_reducer(self) -> dict[str, Reducer]:
        return {"avg": Reducer.AVG, "sum": Reducer.SUM, "min": Reducer.MIN, "max": Reducer.MAX, "loss": Reducer.AVG}

    def evaluate_batch(self, batch: Any) -> dict[str, Any]:
        size = len(batch[0])
        return {name: torch.tensor(float(size)) for name in ("avg", "sum", "min", "max", "loss")}


def test_reducers_and_the_weight_of_batches(tmp_path: Path) -> None:
    run = LocalRun(tmp_path, batches=1)
    run.run(Reduced)
    metrics = run.reporter.validation_rows[0].metrics
    assert (metrics["sum"], metrics["min"], metrics["max"]) == (297.0, 97.0, 100.0)
    assert metrics["avg"] == pytest.approx((100 * 100 + 100 * 100 + 97 * 97) / 297)


def test_evaluate_full_dataset_and_a_lone_loss(tmp_path: Path) -> None:
    run = LocalRun(tmp_path, batches=3)
    run.run(Full)
    assert run.reporter.validation_rows[0].metrics == {"loss": 297.0}
    assert list(run.reporter.training_rows[0].metrics) == ["loss"]


def test_aggregation_is_a_larger_batch(tmp_path: Path) -> None:
    class Ordered(Full):
        def build_training_data_loader(self) -> DataLoader:
            return DataLoader(Digits(True), batch_size=self.context.get_per_slot_batch_size())

    large = LocalRun(tmp_path / "large", batches=3, batch_size=60)
    large.run(Ordered)
    small = LocalRun(tmp_path / "small", batches=6, batch_size=30, optimizations={"aggregation_frequency": 2})
    small.run(Ordered)
    first, second = large.state()["models_state_dict"][0], small.state()["models_state_dict"][0]
    torch.testing.assert_close(first["weight"], second["weight"])


def test_each_mode_steps_its_scheduler_when_it_says(tmp_path: Path) -> None:
    steps: dict[str, list[int]] = {"epoch": [], "batch": [], "manual": []}

    class Stepped(DigitsTrial):
        def __init__(self, context: Any) -> None:
            super().__init__(context)
            modes = LRScheduler.StepMode
            for name, mode in zip(
                steps, (modes.STEP_EVERY_EPOCH, modes.STEP_EVERY_BATCH, modes.MANUAL_STEP), strict=True
            ):
                scheduler = torch.optim.lr_scheduler.LambdaLR(self.adam, lambda step: 1.0)
                scheduler.step = lambda name=name: steps[name].append(DigitsTrial.done)  # type: ignore[method-assign]
                self.by_hand = context.wrap_lr_scheduler(scheduler, mode)

        def train_batch(self, batch: Any, epoch_idx: int, batch_idx: int) -> dict[str, Any]:
            metrics = super().train_batch(batch, epoch_idx, batch_idx)
            if batch_idx == 4:
                self.by_hand.step()
            return metrics

    LocalRun(tmp_path, batches=8, batch_size=500, optimizations={"aggregation_frequency": 2}).run(Stepped)
    assert steps == {"epoch": [3, 6], "batch": [1, 2, 3, 4, 5, 6, 7, 8], "manual": [5]}


def test_models_and_optimizers_in_any_order(tmp_path: Path) -> None:
    class Twisted(DigitsTrial):
        def __init__(self, context: Any) -> None:
            self.context = context
            first, second = nn.Linear(64, 10), nn.Linear(10, 10)
            self.other = context.wrap_model(second)
            self.adam = context.wrap_optimizer(torch.optim.Adam(second.parameters(), lr=1e-2))
            self.model = context.wrap_model(first)
            self.both = context.wrap_optimizer(torch.optim.SGD([*first.parameters(), *second.parameters()], lr=0.05))
            self.counter = Counter()

        def train_batch(self, batch: Any, epoch_idx: int, batch_idx: int) -> dict[str, Any]:
            images, labels = batch
            hidden = self.model(images)
            losses = [nn.functional.cross_entropy(output, labels) for output in (hidden, self.other(hidden.detach()))]
            self.context.backward(losses[1])
            self.context.step_optimizer(self.adam)
            self.context.backward(losses[0])
            self.context.backward(nn.functional.cross_entropy(self.other(self.model(images)), labels))
            self.context.step_optimizer(self.both)
            return {"first": losses[0], "second": losses[1]}

    run = LocalRun(tmp_path, batches=100)
    run.run(Twisted)
    assert run.reporter.validation_rows[-1].metrics["accuracy"] > 0.7
    assert set(run.reporter.training_rows[-1].metrics) == {"first", "second"}


def test_a_checkpoint_of_other_shapes_is_refused(tmp_path: Path) -> None:
    run = LocalRun(tmp_path, batches=2)
    run.run(Full)

    def other(self: Any, context: Any) -> None:
        self.context = context
        self.model = context.wrap_model(nn.Linear(64, 11))
        self.optimizer = context.wrap_optimizer(torch.optim.SGD(self.model.parameters(), lr=0.1))

    with pytest.raises(CheckpointError, match=r"model number 1.*does not fit"):
        run.run(with_method(__init__=other), resume=run.last())


def test_state_of_any_kind_comes_back(tmp_path: Path) -> None:
    state = {
        "a": [1, (2.5, None), {"x": float("inf")}],
        3: np.arange(4),
        "t": torch.ones(2, dtype=torch.bfloat16),
        "u": torch.arange(3),
        "s": np.float32(1.5),
        "b": b"bytes",
        "<odd>": {1, 2},
    }
    state_files.dump(tmp_path, "state", state)
    back = state_files.load(tmp_path, "state")
    assert same({k: v for k, v in back.items() if k != 3}, {k: v for k, v in state.items() if k != 3})
    assert np.array_equal(back[3], state[3])
    assert type(back["s"]) is np.float32
    json.loads((tmp_path / "state.json").read_text())
    state_files.dump(tmp_path, "plain", {"a": [1, (2, 3)]})
    assert not (tmp_path / "plain.pkl").exists()


def test_generators_continue_where_they_were(tmp_path: Path) -> None:
    rng.seed_all(4)
    random.gauss(0, 1), np.random.randn(3), torch.rand(3)
    rng.save(tmp_path)
    expected = (random.gauss(0, 1), random.random(), np.random.randn(), torch.rand(2).tolist())
    rng.seed_all(5)
    rng.load(tmp_path)
    assert (random.gauss(0, 1), random.random(), np.random.randn(), torch.rand(2).tolist()) == expected


def test_metrics_have_the_values_that_they_had_when_they_were_returned(tmp_path: Path) -> None:
    class Changing(DigitsTrial):
        """Returns a parameter, a view of one and a buffer; all change in place afterwards."""

        seen: ClassVar[list[tuple[float, float]]] = []

        def __init__(self, context: PyTorchTrialContext) -> None:
            super().__init__(context)
            self.bias: Any = next(one for one in self.model.parameters() if one.ndim == 1)
            self.mean = torch.zeros(())

        def train_batch(self, batch: Any, epoch_idx: int, batch_idx: int) -> Any:
            metrics = super().train_batch(batch, epoch_idx, batch_idx)
            lone = torch.nn.Parameter(torch.tensor(float(batch_idx)))
            self.seen.append((self.bias[0].item(), float(batch_idx)))
            found = {**metrics, "bias": self.bias[0], "lone": lone}
            if batch_idx:
                with torch.no_grad():
                    self.before.fill_(-1.0)
            self.before = lone
            return found

        def evaluate_batch(self, batch: Any) -> dict[str, Any]:
            self.mean.copy_(batch[0].mean())
            return {"loss": batch[0].mean(), "buffer": self.mean}

    run = LocalRun(tmp_path, batches=6)
    run.run(Changing)
    assert [(row.metrics["bias"], row.metrics["lone"]) for row in run.reporter.training_rows] == [
        pytest.approx(each) for each in Changing.seen
    ]
    for row in run.reporter.validation_rows:
        assert row.metrics["buffer"] == pytest.approx(row.metrics["loss"])


def test_a_loader_of_another_batch_size_than_the_configurations_is_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    class Larger(DigitsTrial):
        def build_training_data_loader(self) -> DataLoader:
            return DataLoader(Digits(True), batch_size=48)

    LocalRun(tmp_path, batches=3).run(DigitsTrial)
    assert "makes batches of" not in caplog.text
    LocalRun(tmp_path, batches=3).run(Larger)
    assert (
        "Larger.build_training_data_loader() makes batches of 48, but hyperparameters.global_batch_size" in caplog.text
    )
