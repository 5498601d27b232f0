"""The tiny model trained by other libraries' loops: told a loop's name per line, it says what a batch takes.

Its answer is a list of pairs: seconds per batch of that loop, and of a bare one right after.

Run by an interpreter that has lightning, pytorch-ignite and determined, which are no dependencies of ours; what it has
not it says in its first line, which names the loops that can be run.
"""

from __future__ import annotations

import importlib.util
import itertools
import json
import logging
import sys
import tempfile
import warnings
from collections.abc import Callable
from typing import Any

import torch
from tiny import BATCHES, Stretches, as_fetched, bare_stretches, made_dataset
from torch import nn

Pairs = list[tuple[float, float]]

warnings.simplefilter("ignore")
logging.disable(logging.WARNING)


def made_loader(kind: Any = torch.utils.data.DataLoader) -> Any:
    """Return the loader that all loops use."""
    return kind(made_dataset(), batch_size=32, shuffle=True, collate_fn=as_fetched)


def made_model() -> tuple[nn.Module, torch.optim.Optimizer]:
    """Return the model and its optimizer."""
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    return model, torch.optim.SGD(model.parameters(), lr=0.01)


def beside_bare() -> Stretches:
    """Return what times a loop against one that is written by hand."""
    loader = made_loader()
    epochs = itertools.chain.from_iterable(itertools.repeat(loader))
    return Stretches(bare_stretches(epochs, *made_model()))


def ignite() -> Pairs:
    """Train by an Engine of pytorch-ignite."""
    from ignite.engine import Engine

    model, optimizer = made_model()
    clock = beside_bare()

    def step(_: Any, batch: Any) -> torch.Tensor:
        clock.tick()
        loss = nn.functional.cross_entropy(model(batch[0]), batch[1])
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss.detach()

    Engine(step).run(made_loader(), max_epochs=BATCHES // 500)
    return clock.pairs


def fabric() -> Pairs:
    """Train by hand with Lightning Fabric's wrappers."""
    from lightning.fabric import Fabric

    made = Fabric(accelerator="cpu", devices=1)
    model, optimizer = made.setup(*made_model())
    loader = made.setup_dataloaders(made_loader())
    clock = beside_bare()
    while clock.batches < BATCHES:
        for inputs, labels in loader:
            clock.tick()
            loss = nn.functional.cross_entropy(model(inputs), labels)
            made.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
    return clock.pairs


def lightning() -> Pairs:
    """Train by Lightning's Trainer, with its loggers, bars and callbacks off."""
    from lightning.pytorch import LightningModule, Trainer

    clock = beside_bare()

    class Module(LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.model, _ = made_model()

        def training_step(self, batch: Any, _: int) -> torch.Tensor:
            clock.tick()
            return nn.functional.cross_entropy(self.model(batch[0]), batch[1])

        def configure_optimizers(self) -> Any:
            return torch.optim.SGD(self.parameters(), lr=0.01)

    trainer = Trainer(
        max_steps=BATCHES,
        accelerator="cpu",
        devices=1,
        logger=False,
        enable_progress_bar=False,
        enable_checkpointing=False,
        enable_model_summary=False,
    )
    trainer.fit(Module(), made_loader())
    return clock.pairs


def determined() -> Pairs:
    """Train a PyTorchTrial by Determined's own Trainer."""
    from determined import pytorch

    clock = beside_bare()

    class Trial(pytorch.PyTorchTrial):
        def __init__(self, context: Any) -> None:
            self.context = context
            model, _ = made_model()
            self.model = context.wrap_model(model)
            self.optimizer = context.wrap_optimizer(torch.optim.SGD(self.model.parameters(), lr=0.01))

        def build_training_data_loader(self) -> Any:
            return made_loader(pytorch.DataLoader)

        def build_validation_data_loader(self) -> Any:
            return made_loader(pytorch.DataLoader)

        def train_batch(self, batch: Any, epoch_idx: int, batch_idx: int) -> Any:
            clock.tick()
            loss = nn.functional.cross_entropy(self.model(batch[0]), batch[1])
            self.context.backward(loss)
            self.context.step_optimizer(self.optimizer)
            return {"loss": loss}

        def evaluate_batch(self, batch: Any) -> Any:
            return {"val_loss": nn.functional.cross_entropy(self.model(batch[0]), batch[1])}

    with pytorch.init() as context:
        pytorch.Trainer(Trial(context), context).fit(max_length=pytorch.Batch(BATCHES), checkpoint_policy="none")
    return clock.pairs


LOOPS: dict[str, tuple[str, Callable[[], Pairs]]] = {
    "ignite": ("ignite", ignite),
    "fabric": ("lightning", fabric),
    "lightning": ("lightning", lightning),
    "determined": ("determined", determined),
}


def main() -> None:
    """Answer one name after the other."""
    torch.set_num_threads(1)
    answers, sys.stdout = sys.stdout, sys.stderr
    known = [name for name, (package, _) in LOOPS.items() if importlib.util.find_spec(package)]
    print(*known, file=answers, flush=True)
    with tempfile.TemporaryDirectory() as folder:
        sys.argv[1:] = [folder]
        for line in sys.stdin:
            if not line.strip():
                return
            print(json.dumps(LOOPS[line.strip()][1]()), file=answers, flush=True)


if __name__ == "__main__":
    main()
