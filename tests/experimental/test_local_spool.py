"""What a run of this process tells others while it trains."""

from __future__ import annotations

import importlib
import time
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import det_native as det  # noqa: E402 (after the check for torch)
from det_native.client.history import sample_as_dictionary  # noqa: E402
from det_native.local.store import LocalStore  # noqa: E402
from det_native.pytorch import DataLoader, PyTorchTrial, PyTorchTrialContext  # noqa: E402
from det_native.schema.states import ExperimentState, TrialState  # noqa: E402

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", autouse=True)
def torch_is_warm() -> None:
    """Import what the first optimizer imports: it makes a cache folder and a variable for the whole process."""
    importlib.import_module("torch._dynamo")


PATIENCE = 60.0
HELD_AT = 9


class Watched(PyTorchTrial):
    """Fits a line, and waits in the middle until the store tells of a validation that was before."""

    def __init__(self, context: PyTorchTrialContext) -> None:
        self.context = context
        self.model = context.wrap_model(torch.nn.Linear(1, 1))
        self.optimizer = context.wrap_optimizer(torch.optim.SGD(self.model.parameters(), lr=0.1))
        self.batches = 0

    def _loader(self) -> DataLoader:
        x = torch.linspace(-1, 1, 16).reshape(-1, 1)
        return DataLoader(torch.utils.data.TensorDataset(x, 2 * x + 1), batch_size=4)

    build_training_data_loader = build_validation_data_loader = _loader

    def train_batch(self, batch: Any, epoch_idx: int, batch_idx: int) -> dict[str, Any]:
        self.batches += 1
        if self.batches == HELD_AT:
            seen.append(self._look())
        loss = torch.nn.functional.mse_loss(self.model(batch[0]), batch[1])
        self.context.backward(loss)
        self.context.step_optimizer(self.optimizer)
        return {"loss": loss}

    def evaluate_batch(self, batch: Any) -> dict[str, Any]:
        return {"error": torch.nn.functional.mse_loss(self.model(batch[0]), batch[1])}

    def _look(self) -> int:
        store = LocalStore.find("local-1")
        end = time.monotonic() + PATIENCE
        while store.experiment().best_validation is None or len(store.samples(1)) < 3:
            assert time.monotonic() < end, "nothing is told while it trains"
            time.sleep(0.02)
        detail, (trial,) = store.experiment(), store.trials()
        rows = store.rows(1, "training")
        assert [row.batch for row in rows] == list(range(1, len(rows) + 1))
        assert len(rows) >= 4
        assert trial.state is TrialState.RUNNING
        assert detail.state is ExperimentState.ACTIVE
        assert 0 < detail.progress < 1
        errors = [row.metrics["error"] for row in store.rows(1, "validation")]
        assert detail.best_validation == trial.best_validation == min(errors)
        seen_samples[:] = [sample_as_dictionary(sample) for sample in store.samples(1)]
        return len(rows)


seen: list[int] = []
seen_samples: list[dict[str, Any]] = []


def test_it_is_told_while_it_trains_and_nothing_is_told_twice() -> None:
    seen.clear()
    config = {
        "searcher": {"name": "single", "metric": "error", "max_length": {"batches": 20}},
        "hyperparameters": {"global_batch_size": 4},
        "min_validation_period": {"batches": 4},
        "scheduling_unit": 2,
        "profiling": {"period": 0.1},
    }
    experiment = det.experimental.create(Watched, config, local=True)
    assert seen
    store = LocalStore.find(str(experiment.id))
    assert [row.batch for row in store.rows(1, "training")] == list(range(1, 21))
    assert [row.batch for row in store.rows(1, "validation")] == [4, 8, 12, 16, 20]
    assert experiment.state is ExperimentState.COMPLETED
    assert store.experiment().seconds_left is None
    samples = experiment.trials[0].metrics("system")
    assert len(samples) >= len(seen_samples) >= 3
    assert samples[: len(seen_samples)] == seen_samples
    times = [sample["time"] for sample in samples]
    assert times == sorted(set(times))
    assert all(sample["memory_bytes"] > 1_000_000 for sample in samples)
