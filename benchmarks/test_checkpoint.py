"""Checkpoints: their bytes over those of the state in them, how long training waits for one, and its way to disk."""

from __future__ import annotations

import itertools
import os
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from det_harness.frameworks.torch import trial_state
from det_harness.frameworks.torch.controller import PyTorchTrialController
from det_harness.frameworks.torch.host_copy import HostMemory
from det_harness.local.run import LocalRun
from det_harness.trial.checkpoint import CheckpointOwner, TrialCheckpoints
from det_harness.trial.throttle import Throttle
from rows_reporter import RowsReporter, train_here
from safetensors.torch import save
from torch import nn

from det_native.pytorch import DataLoader, PyTorchTrial, PyTorchTrialContext
from det_native.schema.loading import load_config
from det_native.storage.checkpoints import CheckpointStorage

MARK = b"# a file of the user's, known by these bytes\n"


class FourMegabytes(PyTorchTrial):
    """Two layers of 2 MB each, with Adam."""

    seen: FourMegabytes

    def __init__(self, context: PyTorchTrialContext) -> None:
        type(self).seen = self
        self.context = context
        self.model = context.wrap_model(nn.Sequential(nn.Linear(512, 1024), nn.ReLU(), nn.Linear(1024, 512)))
        self.optimizer = context.wrap_optimizer(torch.optim.Adam(self.model.parameters()))

    def build_training_data_loader(self) -> DataLoader:
        return DataLoader(torch.utils.data.TensorDataset(torch.ones(8, 512)), batch_size=4)

    def build_validation_data_loader(self) -> DataLoader:
        return self.build_training_data_loader()

    def train_batch(self, batch: Any, epoch_idx: int, batch_idx: int) -> dict[str, Any]:
        loss = self.model(batch[0]).square().mean()
        self.context.backward(loss)
        self.context.step_optimizer(self.optimizer)
        return {"loss": loss}

    def evaluate_batch(self, batch: Any) -> dict[str, Any]:
        return {"val_loss": self.model(batch[0]).square().mean()}


@pytest.fixture
def user_folder(tmp_path: Path) -> Iterator[Path]:
    """The working directory, with a file of the user's."""
    folder, before = tmp_path / "project", Path.cwd()
    folder.mkdir()
    (folder / "module.py").write_bytes(MARK)
    os.chdir(folder)
    yield folder
    os.chdir(before)


def _train(directory: Path) -> LocalRun:
    config = load_config(
        {
            "hyperparameters": {"global_batch_size": 4},
            "searcher": {"name": "single", "metric": "val_loss", "max_length": {"batches": 4}},
        },
        local=True,
    ).model_dump(mode="json")
    return train_here(
        lambda services: PyTorchTrialController(FourMegabytes, services),
        config=config,
        hparams={"global_batch_size": 4},
        trial_seed=0,
        directory=directory,
        framework="torch",
    )


def _size_of_state(trial: FourMegabytes) -> int:
    tensors = {f"model.{name}": tensor for name, tensor in trial.model.state_dict().items()}
    for index, state in trial.optimizer.state_dict()["state"].items():
        tensors |= {f"optimizer.{index}.{name}": torch.as_tensor(value) for name, value in state.items()}
    return len(save(tensors))


def test_bytes(figure: Callable[[str, str, str, bool], None], user_folder: Path, tmp_path: Path) -> None:
    result = _train(tmp_path / "checkpoints")
    location, manifest = result.reporter.checkpoints[-1]
    files = [path for path in Path(location).rglob("*") if path.is_file()]
    size = sum(path.stat().st_size for path in files)
    ratio = size / _size_of_state(FourMegabytes.seen)
    what = f"checkpoint of a 4 MB model with Adam ({size / 1e6:.1f} MB), bytes over its state"
    figure(what, f"{ratio:.4f}x", "≤ 1.01x", ratio <= 1.01)
    users = {path.name for path in user_folder.iterdir()}
    copied = sum(path.stat().st_size for path in files if path.name in users or MARK in path.read_bytes())
    figure("user code in that checkpoint", f"{copied} B", "0 B", copied == 0)
    assert manifest.files


def _large_state() -> tuple[list[torch.Tensor], dict[str, Any]]:
    tensors = [torch.rand(1 << 22) for _ in range(30)]
    return tensors, {"models_state_dict": [{str(index): tensor for index, tensor in enumerate(tensors)}]}


def test_blocked(paired: Any) -> None:
    tensors, state = _large_state()
    buffers = [tensor.clone() for tensor in tensors]
    memory = HostMemory()

    def ours() -> None:
        _, lent = memory.copy(state)
        memory.give_back(lent)  # as when its file is written

    def peer() -> None:
        for buffer, tensor in zip(buffers, tensors, strict=True):
            buffer.copy_(tensor)

    paired("training waits for a checkpoint of 503 MB, its second and later ones, over memcpy", ours, peer, goal=1.15)


@pytest.fixture
def save_large(tmp_path: Path) -> Callable[[], Callable[[], None]]:
    """Return what begins a checkpoint of 503 MB, and returns what waits until it is on the disk."""
    folder = tmp_path / "checkpoints"
    checkpoints = TrialCheckpoints(CheckpointStorage(str(folder)), CheckpointOwner("torch", {}), RowsReporter("loss"))
    memory, batches, (_, state) = HostMemory(), itertools.count(1), _large_state()

    def begin() -> Callable[[], None]:
        checkpoints.save(next(batches), lambda place: trial_state.save(place, state, {}, None, memory), beside=True)

        def end() -> None:
            checkpoints.wait()
            shutil.rmtree(folder)
            os.sync()

        return end

    return begin


@pytest.mark.parametrize("kept", [False, True], ids=["as it is", "with a stager that is kept"])
def test_blocked_beside_async_save(
    paired: Any, save_large: Callable[[], Callable[[], None]], tmp_path: Path, kept: bool
) -> None:
    from torch.distributed.checkpoint.staging import DefaultStager, StagingOptions
    from torch.distributed.checkpoint.state_dict_saver import async_save

    _, state = _large_state()
    # One that is kept from one checkpoint to the next uses the memory of the last copy again, as we do.
    stager = DefaultStager(StagingOptions(*[False] * 4)) if kept else None

    def ours() -> float:
        begin = time.perf_counter()
        end = save_large()
        seconds = time.perf_counter() - begin
        end()
        return seconds

    def peer() -> float:
        begin = time.perf_counter()
        begun: Any = async_save(state, checkpoint_id=tmp_path / "theirs", async_stager=stager, no_dist=True)
        seconds = time.perf_counter() - begin
        getattr(begun, "upload_completion", begun).result()
        shutil.rmtree(tmp_path / "theirs")
        os.sync()
        return seconds

    what = "training waits for a checkpoint of 503 MB, the whole call, over torch.distributed.checkpoint.async_save"
    if kept:
        what += " with a stager kept for all of them"
    paired(what, ours, peer, goal=None if kept else 0.8, value=lambda seconds, _: seconds)
    if stager is not None:
        stager.close()


def test_next_steps(paired: Any, save_large: Callable[[], Callable[[], None]]) -> None:
    model = nn.Sequential(*(nn.Linear(1024, 1024) for _ in range(12)))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    images = torch.rand(256, 1024)

    def five_steps() -> float:
        begin = time.perf_counter()
        for _ in range(5):
            optimizer.zero_grad()
            model(images).square().mean().backward()
            optimizer.step()
        return time.perf_counter() - begin

    def ours() -> float:
        end = save_large()
        seconds = five_steps()
        end()
        return seconds

    what = "five batches right after a checkpoint of 503 MB, while it is written, over five without one"
    paired(what, ours, five_steps, goal=1.1, rounds=11, value=lambda seconds, _: seconds)


def test_durable(paired: Any, tmp_path: Path) -> None:
    tensors, state = _large_state()
    storage = CheckpointStorage(str(tmp_path / "checkpoints"))
    checkpoints = TrialCheckpoints(storage, CheckpointOwner("torch", {}), RowsReporter("loss"))
    memory = HostMemory()
    batches = itertools.count(1)

    def write(folder: Path) -> Callable[[Throttle], None]:
        return trial_state.save(folder, state, {}, None, memory)

    def clear() -> None:
        shutil.rmtree(tmp_path / "checkpoints", ignore_errors=True)
        (tmp_path / "raw").unlink(missing_ok=True)
        os.sync()

    def ours() -> float:
        clear()
        begin = time.perf_counter()
        checkpoints.save(next(batches), write, beside=True)
        checkpoints.wait()
        return time.perf_counter() - begin

    def peer() -> float:
        clear()
        begin = time.perf_counter()
        with (tmp_path / "raw").open("wb") as raw:
            for tensor in tensors:
                raw.write(memoryview(tensor.numpy()).cast("B"))
            raw.flush()
            os.fsync(raw.fileno())
        return time.perf_counter() - begin

    what = "a checkpoint of 503 MB, from the copy in memory to the last fsync, over writing the bytes"
    paired(what, ours, peer, goal=1.1, rounds=9, value=lambda seconds, _: seconds)
