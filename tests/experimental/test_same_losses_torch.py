"""The same seeds give the losses of plain torch, bit for bit, also where a training is stopped and goes on."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import plain_torch  # noqa: E402 (after the check for torch)
from det_harness.frameworks.torch.loop import TorchLoopController  # noqa: E402
from forked_programs import ForkedPrograms  # noqa: E402
from loop_run import LoopRun  # noqa: E402
from native_line import torch_generator, torch_is_warm  # noqa: E402, F401 (autouse)

from det_native.pytorch.native import PyTorchNativeContext  # noqa: E402
from det_native.schema.manifests import CheckpointManifest  # noqa: E402

pytestmark = pytest.mark.slow


#: Those of `make test`.
SOME = ["shuffled", "one generator", "own batches", "kept workers", "rows"]


@pytest.mark.parametrize("kinds", [SOME, pytest.param(plain_torch.KINDS, marks=pytest.mark.long)], ids=["some", "all"])
def test_local_training_has_the_losses_of_plain_torch(
    tmp_path: Path, torch_programs: ForkedPrograms, kinds: list[str]
) -> None:
    commands = [[plain_torch.__file__, how, *kinds] for how in ("plain", "local")]
    codes, outputs = torch_programs.run(tmp_path, commands, {})
    assert codes == [0, 0], "\n".join(outputs)
    lines = [line for output in outputs for line in output.splitlines() if line.startswith("LOSSES ")]
    plain, local = (json.loads(line.removeprefix("LOSSES ")) for line in lines)
    assert list(plain) == kinds
    for kind in kinds:
        assert local[kind] == plain[kind], kind


class Run(LoopRun):
    """A run with one of the kinds of data of the script, whose process has drawn this and that before."""

    def __init__(self, folder: Path, kind: str, *, drawn: int = 0, resume: CheckpointManifest | None = None) -> None:
        self.training, self.validating = plain_torch.loaders(kind)
        self.drawn = drawn
        self.length = length = len(self.training)
        super().__init__(
            folder,
            resume=resume,
            hyperparameters={"global_batch_size": 16},
            records_per_epoch=0,
            searcher={"name": "single", "metric": "val_loss", "max_length": {"batches": 3 * length}},
            min_validation_period={"batches": length},
            min_checkpoint_period={"batches": length},
        )

    def _make(self, dropout: float) -> None:
        self.context = PyTorchNativeContext(
            self.environment, on_fit=lambda call: None, on_train=lambda call: lambda: self._begin(call), role="worker"
        )
        model, optimizer = plain_torch.made(7)
        self.model, self.optimizer = self.context.wrap_model(model), self.context.wrap_optimizer(optimizer)
        self.scheduler = torch.optim.lr_scheduler.ConstantLR(self.optimizer, 1.0)

    def _begin(self, call: Any) -> Iterator[Any]:
        plain_torch.made(42 + self.drawn)
        self.controller = TorchLoopController(call, self.services)
        batches: Iterator[Any] = self.controller.batches()
        return batches

    def loss(self, batch: Any) -> Any:
        return torch.nn.functional.cross_entropy(self.model(batch[0]), batch[1])

    def batches(self, **arguments: Any) -> Iterator[Any]:
        return self.context.train(
            self.training, validation_loader=self.validating, evaluate_batch=self.evaluate, epochs=3
        )


CASES = [(kind, "in a pass") for kind in (*plain_torch.KINDS, "noisy workers")]
#: Those of `make test`.
FIRST = [("shuffled", "in the first"), ("own batches", "in a pass"), ("kept workers", "in a pass")]
#: Of these the others are in `make lanes`; all further ones are in `make soak`.
LONG = ("shuffled", "own batches", "workers", "kept workers", "noisy workers")
CASES += [(kind, place) for kind in ("shuffled", "own batches") for place in ("at its end", "in the first")]


@pytest.mark.parametrize(
    ("kind", "place"),
    [
        pytest.param(*case, marks=[] if case in FIRST else pytest.mark.long if case[0] in LONG else pytest.mark.soak)
        for case in CASES
    ],
)
def test_a_training_that_is_stopped_goes_on_with_the_same_bits(tmp_path: Path, kind: str, place: str) -> None:
    whole = Run(tmp_path / "whole", kind)
    whole.train()
    length = whole.length
    stop_at = {"in a pass": length + length // 2, "at its end": 2 * length, "in the first": 2}[place]
    first = Run(tmp_path / "parts", kind)
    first.train(stop_at=stop_at)
    random.seed(9)
    np.random.seed(9)
    rest = Run(tmp_path / "parts", kind, drawn=1, resume=first.last())
    rest.train()
    expected, *parts = (run.result() for run in (whole, first, rest))
    for rows in ("training", "validation"):
        assert [row for part in parts for row in part[rows]] == expected[rows]
    assert len(expected["training"]) == 3 * length
    assert all(torch.equal(parts[1]["model"][name], expected["model"][name]) for name in expected["model"])
