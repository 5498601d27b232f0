"""Cost of one training batch over a bare hand-written loop with the same loader."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from timed_trials import train_timed
from tiny import STRETCH, InMemory, Stretches, as_fetched, bare_stretches, made_dataset
from torch import nn

from det_native.pytorch import DataLoader, PyTorchTrial, PyTorchTrialContext

Pairs = list[tuple[float, float]]

TINY_ROUNDS = 60
PEERS = Path(__file__).with_name("loop_peers.py")
PEER_NAMES = {
    "ignite": "pytorch-ignite's Engine",
    "fabric": "Lightning Fabric",
    "lightning": "Lightning's Trainer",
    "determined": "Determined's Trainer",
}


class TinyTrial(PyTorchTrial):
    """MLP 64-64-10, batches of 32, SGD; the loss is kept every batch and reported."""

    batch_size = 32

    @staticmethod
    def tick() -> None:
        """Take the time: a batch begins."""

    def __init__(self, context: PyTorchTrialContext) -> None:
        self.context = context
        self.model = context.wrap_model(self.make_model())
        self.optimizer = context.wrap_optimizer(torch.optim.SGD(self.model.parameters(), lr=0.01))

    @staticmethod
    def make_model() -> nn.Module:
        return nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))

    @staticmethod
    def make_dataset() -> InMemory:
        return made_dataset()

    def build_training_data_loader(self) -> DataLoader:
        return DataLoader(self.make_dataset(), batch_size=self.batch_size, shuffle=True, collate_fn=as_fetched)

    def build_validation_data_loader(self) -> DataLoader:
        dataset = self.make_dataset()
        return DataLoader(InMemory(*(tensor[:32] for tensor in dataset.tensors)), batch_size=32, collate_fn=as_fetched)

    def train_batch(self, batch: Any, epoch_idx: int, batch_idx: int) -> dict[str, Any]:
        self.tick()
        inputs, labels = batch
        loss = nn.functional.cross_entropy(self.model(inputs), labels)
        self.context.backward(loss)
        self.context.step_optimizer(self.optimizer)
        return {"loss": loss}

    def evaluate_batch(self, batch: Any) -> dict[str, Any]:
        inputs, labels = batch
        return {"val_loss": nn.functional.cross_entropy(self.model(inputs), labels)}


def _pairs(folder: Path, trial_class: type[TinyTrial], length: int, rounds: int) -> Pairs:
    """Train a class, and by hand what it trains, in stretches by turns; return the seconds per batch of each."""
    loader = torch.utils.data.DataLoader(
        trial_class.make_dataset(), batch_size=trial_class.batch_size, shuffle=True, collate_fn=as_fetched
    )
    epochs = itertools.chain.from_iterable(itertools.repeat(loader))
    model = trial_class.make_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    clock = Stretches(bare_stretches(epochs, model, optimizer, length), length)
    train_timed(folder, trial_class, (rounds + 2) * length, trial_class.batch_size, clock.tick)
    return clock.pairs


class MediumModel(nn.Module):
    """Transformer of 4 layers, d = 128, on 64 tokens; the mean over the tokens is classified."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Linear(1, 128)
        layer = nn.TransformerEncoderLayer(128, 4, 512, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 4, enable_nested_tensor=False)
        self.head = nn.Linear(128, 10)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        return self.head(self.encoder(self.embed(inputs.unsqueeze(-1))).mean(dim=1))


class MediumTrial(TinyTrial):
    """The same loop around a model of some 60 ms a step, or twice that where the processor is slow."""

    batch_size = 16

    @staticmethod
    def make_model() -> nn.Module:
        return MediumModel()

    @staticmethod
    def make_dataset() -> InMemory:
        generator = torch.Generator().manual_seed(0)
        return InMemory(torch.randn(320, 64, generator=generator), torch.randint(10, (320,), generator=generator))


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Run torch on one thread: the figure is the cost around the step, not the step's parallelism."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def peer_loops(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[list[str], Callable[[str], Pairs]]]:
    """The loops that the interpreter ``PEERS_PYTHON`` has; and what runs one of them, by turns with a bare one."""
    python = os.environ.get("PEERS_PYTHON")
    if python is None:
        pytest.skip("PEERS_PYTHON names no interpreter that has lightning, pytorch-ignite, determined and tensorboard")
    folder = tmp_path_factory.mktemp("peers")
    with (folder / "peers.log").open("w") as log:
        process = subprocess.Popen(
            [python, str(PEERS)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True, cwd=folder
        )
    assert process.stdin is not None
    assert process.stdout is not None
    told, said = process.stdin, process.stdout

    def run(name: str) -> Pairs:
        print(name, file=told, flush=True)
        pairs: Pairs = json.loads(said.readline())
        return pairs

    try:
        yield said.readline().split(), run
    finally:
        told.close()
        process.wait(60)
        said.close()


@pytest.fixture(scope="module")
def tiny_ratios() -> dict[str, float]:
    """The ratios over a bare loop that were found so far, by whose loop it is."""
    return {}


def test_tiny(paired: Any, tmp_path: Path, tiny_ratios: dict[str, float]) -> None:
    pairs = _pairs(tmp_path, TinyTrial, STRETCH, TINY_ROUNDS)
    found = paired.of("one batch, tiny MLP, over a bare loop", pairs, goal=1.05)
    tiny_ratios["ours"] = found.ratio


@pytest.mark.parametrize("name", PEER_NAMES)
def test_tiny_by_others(
    paired: Any,
    name: str,
    peer_loops: tuple[list[str], Callable[[str], Pairs]],
    tiny_ratios: dict[str, float],
    figure: Callable[[str, str, str, bool], None],
) -> None:
    known, run = peer_loops
    if name not in known:
        pytest.skip(f"PEERS_PYTHON has no {name}")
    what = f"the same model by {PEER_NAMES[name]}, over a bare loop"
    found = paired.of(what, run(name), goal=None)
    tiny_ratios[name] = found.ratio
    if name == "determined" and "ours" in tiny_ratios:
        share = (tiny_ratios["ours"] - 1) / (found.ratio - 1)
        figure(
            "what our loop adds to a batch, over what Determined's adds", f"{share:.3f}x", "≤ 0.083x", share <= 1 / 12
        )


def test_medium(paired: Any, tmp_path: Path) -> None:
    paired.of("one batch, medium transformer, over a bare loop", _pairs(tmp_path, MediumTrial, 1, 100), goal=1.01)
