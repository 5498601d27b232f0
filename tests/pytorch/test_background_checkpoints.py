"""Checkpoints of PyTorch trials are written behind the training, from a copy made when they were due."""

from __future__ import annotations

import io
import resource
import threading
import zipfile
from pathlib import Path
from typing import Any

import pytest
import torch
from det_harness.frameworks.torch.host_copy import HostMemory
from det_harness.trial import throttle
from det_harness.trial.publishing import disk_errors
from digits_trials import DigitsTrial, Full, LocalRun, same
from torch import nn

from det_native.errors import StorageError
from det_native.pytorch import PyTorchCallback

pytestmark = pytest.mark.slow

PATIENCE = 60


def test_training_goes_on_while_a_checkpoint_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    next_batch, written = threading.Event(), torch.save
    due: list[dict[str, torch.Tensor]] = []

    class Watched(Full):
        def train_batch(self, batch: Any, epoch_idx: int, batch_idx: int) -> Any:
            if batch_idx == 2:
                due.append({name: value.clone() for name, value in self.model.state_dict().items()})
            loss = super().train_batch(batch, epoch_idx, batch_idx)
            if batch_idx == 2:
                next_batch.set()
            return loss

    def save(*arguments: Any) -> None:
        assert next_batch.wait(PATIENCE), "the training waits for the file"
        written(*arguments)

    monkeypatch.setattr(torch, "save", save)
    run = LocalRun(tmp_path, batches=4, min_checkpoint_period={"batches": 2})
    run.run(Watched)
    first = run.reporter.checkpoints[0][1]
    assert first.batch == 2
    with run.storage.open(first.uuid, "state_dict.pth") as stream:
        assert same(dict(torch.load(stream, weights_only=True)["models_state_dict"][0]), due[0])


def test_a_training_on_the_processor_is_not_slowed_and_who_waits_is_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(throttle, "_SHARE_BESIDE", 1e-9)  # the first rest would take days
    published: list[int] = []

    class Watched(Full):
        def train_batch(self, batch: Any, epoch_idx: int, batch_idx: int) -> Any:
            published.append(len(run.reporter.checkpoints))
            return super().train_batch(batch, epoch_idx, batch_idx)

    run = LocalRun(tmp_path, batches=6, min_checkpoint_period={"batches": 2})
    run.run(Watched)
    assert published == [0, 0, 0, 0, 1, 1]  # one is waited for where the next is due
    assert [manifest.batch for _, manifest in run.reporter.checkpoints] == [2, 4, 6]


def test_checksums_of_tensors_are_left_out_of_checkpoints_only(tmp_path: Path) -> None:
    run = LocalRun(tmp_path, batches=2)
    run.run(Full)
    with run.storage.open(run.reporter.checkpoints[0][1].uuid, "state_dict.pth") as stream:
        assert not any(entry.CRC for entry in zipfile.ZipFile(stream).infolist() if "/data/" in entry.filename)
    users = io.BytesIO()
    torch.save(torch.ones(4), users)
    assert any(entry.CRC for entry in zipfile.ZipFile(users).infolist() if "/data/" in entry.filename)


@pytest.mark.parametrize("said", ["[enforce fail at inline_container.cc:778]", "something odd"])
def test_what_goes_wrong_behind_the_training_ends_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str
) -> None:
    def save(*_: Any) -> None:
        raise RuntimeError(said)

    monkeypatch.setattr(torch, "save", save)
    with pytest.raises(StorageError, match=r"The checkpoint of batch 2 cannot be") as caught:
        LocalRun(tmp_path, batches=8, min_checkpoint_period={"batches": 2}).run(Full)
    assert said in str(caught.value)


def test_what_the_disk_says_is_told_where_torch_says_that_a_file_is_short(tmp_path: Path) -> None:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, before[1]))
    try:
        with (
            (tmp_path / "file").open("wb", buffering=0) as stream,
            pytest.raises(StorageError, match=r"batch 2 cannot be written to .*: \[Errno 27\] File too large$"),
            disk_errors(tmp_path, 2),
        ):
            torch.save(torch.zeros(100_000), throttle.Throttle().file(stream))  # type: ignore[arg-type]
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_an_interrupt_of_the_wait_loses_no_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    interrupted, written = threading.Event(), torch.save

    def save(*arguments: Any) -> None:
        assert interrupted.wait(PATIENCE)
        written(*arguments)

    def join(self: threading.Thread, timeout: float | None = None) -> None:
        joined(self, 0.0)
        if not interrupted.is_set():
            interrupted.set()
            raise KeyboardInterrupt
        joined(self, timeout)

    joined = threading.Thread.join
    monkeypatch.setattr(torch, "save", save)
    monkeypatch.setattr("det_harness.trial.publishing.Publication.join", join)
    run = LocalRun(tmp_path, batches=2)
    with pytest.raises(KeyboardInterrupt):
        run.run(Full)
    assert run.checkpoints is not None
    run.checkpoints.wait()  # as everybody does who runs a trial, whatever ended it
    assert [manifest.batch for _, manifest in run.reporter.checkpoints] == [2]


@pytest.mark.parametrize("hook", ["on_checkpoint_end", "on_checkpoint_write_end"])
def test_who_is_given_the_folder_finds_all_in_it(tmp_path: Path, hook: str) -> None:
    found: list[set[str]] = []

    def look(self: Any, folder: str) -> None:
        found.append({path.name for path in Path(folder).iterdir()})

    callback = type("Looks", (PyTorchCallback,), {hook: look})()
    run = LocalRun(tmp_path, batches=2)
    run.run(type("Watched", (DigitsTrial,), {"build_callbacks": lambda self: {"looks": callback}}))
    assert found
    assert all({"state_dict.pth", "rng.npz", "state.json"} <= names for names in found)


def test_the_copy_is_its_own_and_shares_what_was_shared() -> None:
    tied = nn.Linear(100, 100)
    other = nn.Linear(100, 100)
    other.weight = tied.weight
    model = nn.Sequential(tied, other)
    graph = model(torch.ones(1, 100)).sum() * 2
    state = {"model": model.state_dict(), "row": tied.weight.detach()[3], "list": [graph, (torch.zeros(0), "text")]}
    copied, _ = HostMemory().copy(state)
    assert same(dict(copied["model"]), dict(state["model"]))
    assert copied["model"]._metadata == state["model"]._metadata
    assert copied["list"][0].item() == graph.item()
    file = io.BytesIO()
    torch.save(copied, file)
    assert file.tell() < 1.2 * 4 * (100 * 100 + 2 * 100 + 1)
    before = copied["row"].clone()
    with torch.no_grad():
        tied.weight.add_(1.0)
    assert same(copied["row"], before)
    assert same(copied["model"]["0.weight"][3], before)


def test_the_memory_of_a_written_copy_is_used_for_the_next() -> None:
    weight, flags = torch.ones(1000, 10), torch.tensor([True, False])
    state = {"weight": weight, "row": weight[5], "across": weight.t(), "flags": flags, "none": torch.zeros(0)}
    memory = HostMemory()
    first, lent = memory.copy(state)
    weight.mul_(2.0)
    second, _ = memory.copy(state)
    assert float(first["row"].sum()) == 10.0, "what is still being written is left alone"
    place = first["weight"].data_ptr()
    assert second["weight"].data_ptr() != place
    memory.give_back(lent)
    weight.mul_(2.0)
    third, _ = memory.copy(state)
    assert third["weight"].data_ptr() == place
    assert same(third, state)
    assert third["across"].stride() == state["across"].stride()
    assert float(second["row"].sum()) == 20.0
    fourth, _ = memory.copy(state)
    assert fourth["weight"].data_ptr() != place, "given back once, used once"


def test_tensors_of_other_kinds_are_copied_as_what_they_are() -> None:
    parameter = nn.Parameter(torch.ones(3))
    sparse = torch.eye(3).to_sparse()
    turned = torch.tensor([1 + 2j]).conj()
    copied, _ = HostMemory().copy([parameter, sparse, turned])
    assert isinstance(copied[0], nn.Parameter)
    with torch.no_grad():
        parameter.add_(1.0)
        sparse.mul_(3.0)
    assert copied[0].tolist() == [1.0, 1.0, 1.0]
    assert copied[1].to_dense().tolist() == torch.eye(3).tolist()
    assert copied[2].tolist() == [1 - 2j]
