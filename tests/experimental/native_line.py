"""What a user has around ``det.experimental.pytorch.init()``, for the tests of ``fit()`` and of the loop."""

import importlib
from collections.abc import Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch.utils.data import DataLoader, TensorDataset  # noqa: E402

import det_native as det  # noqa: E402 (after the check for torch)

CONFIG: dict[str, Any] = {"hyperparameters": {"lr": 0.05}, "reproducibility": {"experiment_seed": 5}}


@pytest.fixture(scope="module", autouse=True)
def torch_is_warm() -> None:
    """Import what the first optimizer imports: it makes a cache folder and a variable for the whole process."""
    importlib.import_module("torch._dynamo")


@pytest.fixture(autouse=True)
def torch_generator() -> Iterator[None]:
    """``init()`` seeds torch in the user's process; the tests after this one are not to notice."""
    before = torch.get_rng_state()
    yield
    torch.set_rng_state(before)


class Line:
    """A user's objects and functions around one context."""

    def __init__(self, config: Any = CONFIG, **arguments: Any) -> None:
        self.context = det.experimental.pytorch.init(config, **({"local": True} | arguments))
        self.model = self.context.wrap_model(torch.nn.Linear(1, 1))
        rate = self.context.get_hparams().get("lr", 0.05)
        self.optimizer = self.context.wrap_optimizer(torch.optim.SGD(self.model.parameters(), lr=rate))
        self.calls: list[tuple[int, int, int]] = []

    def loss(self, batch: Any) -> Any:
        x, y = batch
        return torch.nn.functional.mse_loss(self.model(x), y)

    def step(self, batch: Any) -> Any:
        loss = self.loss(batch)
        self.context.backward(loss)
        self.context.step_optimizer(self.optimizer)
        return loss

    def train_batch(self, batch: Any, epoch_idx: int, batch_idx: int) -> dict[str, Any]:
        self.calls.append((epoch_idx, batch_idx, len(batch[0])))
        return {"loss": self.step(batch)}

    def evaluate_batch(self, batch: Any) -> dict[str, Any]:
        assert not self.model.training
        assert not torch.is_grad_enabled()
        return {"val_loss": self.loss(batch), "records": len(batch[0])}

    def fit(self, train_loader: Any = None, **arguments: Any) -> Any:
        given = {"train_batch": self.train_batch, "evaluate_batch": self.evaluate_batch, "epochs": 2}
        loader = loader_of() if train_loader is None else train_loader
        return self.context.fit(loader, loader_of(), **(given | arguments))

    def alone(self, train_loader: Any = None, **arguments: Any) -> Any:
        """Without validation."""
        loader = loader_of() if train_loader is None else train_loader
        return self.context.fit(loader, **({"train_batch": self.train_batch, "epochs": 2} | arguments))

    def loop(self, train_loader: Any = None, **arguments: Any) -> Iterator[Any]:
        """The batches of the user's own loop."""
        given = {"epochs": 2, "validation_loader": loader_of(), "evaluate_batch": self.evaluate_batch}
        batches: Iterator[Any] = self.context.train(train_loader or loader_of(), **(given | arguments))
        return batches


def loader_of(records: int = 10, batch_size: int = 4, **further: Any) -> Any:
    x = torch.linspace(-1, 1, records).reshape(-1, 1)
    return DataLoader(TensorDataset(x, 2 * x + 1), batch_size=batch_size, **further)
