"""``create_trial_instance`` and ``test_one_batch``: deprecated, and working."""

from __future__ import annotations

import importlib
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import det_native as det  # noqa: E402 (after the check for torch)
from det_native.errors import ArgumentError, TrialDefinitionError  # noqa: E402
from det_native.pytorch import DataLoader, PyTorchTrial, PyTorchTrialContext  # noqa: E402

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("recorded")]

CONFIG: dict[str, Any] = {
    "searcher": {"name": "single", "metric": "error", "max_length": {"batches": 500}},
    "hyperparameters": {"global_batch_size": 4, "lr": det.Log(-2, -1)},
}


@pytest.fixture(scope="module", autouse=True)
def torch_is_warm() -> None:
    """Import what the first optimizer imports: it makes a cache folder and a variable for the whole process."""
    importlib.import_module("torch._dynamo")


class LineTrial(PyTorchTrial):
    def __init__(self, context: PyTorchTrialContext) -> None:
        self.context = context
        model = context.wrap_model(torch.nn.Linear(1, 1))
        optimizer = context.wrap_optimizer(torch.optim.SGD(model.parameters(), lr=context.get_hparam("lr")))
        self.model, self.optimizer = context.configure_apex_amp(model, optimizer, opt_level="O1")
        context.wrap_lr_scheduler(
            torch.optim.lr_scheduler.StepLR(self.optimizer, 1),
            step_mode=det.pytorch.LRScheduler.StepMode.STEP_EVERY_EPOCH,
        )

    def build_training_data_loader(self) -> DataLoader:
        x = torch.linspace(-1, 1, 16).reshape(-1, 1)
        data = torch.utils.data.TensorDataset(x, 2 * x + 1)
        return DataLoader(data, batch_size=self.context.get_per_slot_batch_size())

    build_validation_data_loader = build_training_data_loader

    def train_batch(self, batch: Any, epoch_idx: int, batch_idx: int) -> Any:
        loss = torch.nn.functional.mse_loss(self.model(batch[0]), batch[1])
        self.context.backward(loss)
        self.context.step_optimizer(self.optimizer)
        return loss

    def evaluate_batch(self, batch: Any) -> dict[str, Any]:
        return {"error": torch.nn.functional.mse_loss(self.model(batch[0]), batch[1])}


def test_one_batch_is_trained_validated_and_saved(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.warns(DeprecationWarning, match=r"create\(trial_class, config, local=True, test=True\)"):
        det.experimental.test_one_batch(trial_class=LineTrial, config=CONFIG)
    said = capsys.readouterr().out
    assert [said.count(part) for part in ("trained on one batch", "validated:", "saved a checkpoint")] == [1, 1, 1]
    assert "The quick check passed." in said


@pytest.mark.filterwarnings("ignore:test_one_batch")
def test_without_a_class_it_says_what_it_takes() -> None:
    with pytest.raises(ArgumentError, match="trial_class="):
        det.experimental.test_one_batch(config=CONFIG)
    with pytest.raises(TrialDefinitionError, match="takes a Trial class"):
        det.experimental.test_one_batch(None, None, 3, CONFIG)  # type: ignore[arg-type]


def test_an_instance_trains_in_ones_own_loop() -> None:
    with pytest.warns(DeprecationWarning, match="from_config"):
        trial = det.experimental.create_trial_instance(LineTrial, "", CONFIG)
    assert isinstance(trial, LineTrial)
    assert 0.01 <= trial.context.get_hparam("lr") <= 0.1
    losses = []
    for _ in range(30):
        for number, batch in enumerate(trial.build_training_data_loader()):
            losses.append(trial.train_batch(trial.context.to_device(batch), 0, number).item())
    assert losses[-1] < losses[0] / 10


def test_the_documented_names_are_where_they_were() -> None:
    assert issubclass(det.pytorch.PyTorchTrialContext, det.TrialContext)
    assert issubclass(PyTorchTrial, det.Trial)
    context = PyTorchTrialContext.from_config(CONFIG)
    assert isinstance(context.distributed, det.DistributedContext)
    assert isinstance(context.experimental, det.pytorch.PyTorchExperimentalContext)
    assert det.pytorch.DistributedContext is det.DistributedContext
    for name in det.pytorch.__all__:
        assert getattr(det.pytorch, name) is not None
