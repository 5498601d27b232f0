"""A storage of checkpoints that is full, damaged, or written to by somebody else; the rest goes on all the same."""

from __future__ import annotations

import os
import pickle
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from faults import PATIENCE, Cluster, Gate, Kernel, assert_complete_rows, checkpoint_at, ended, events_until
from programs import BATCHES, RANKED
from small_disks import SmallDisk, small_disk

from det_native.client.handles import Experiment
from det_native.errors import CheckpointCorruptError
from det_native.schema.states import ExperimentState
from det_native.storage.checkpoints import CheckpointStorage

pytestmark = pytest.mark.slow

# Where the checkpoints go is the test's to say.
CREATE = """
storage = {{"type": "shared_fs", "host_path": {path!r}, "save_trial_latest": 9}}
experiment = det.experimental.create(Digits, configuration(hyperparameters=settings, checkpoint_storage=storage))
"""


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    with small_disk(tmp_path / "disk") as mounted:
        yield mounted


def _submit(kernel: Kernel, cluster: Cluster, path: Path, gate: Gate, stops: str) -> Experiment:
    return cluster.attach(kernel.submit_with(CREATE.format(path=str(path)), stops=stops, port=gate.port))


def _waits(experiment: Experiment, batch: int) -> str:
    """Wait until the trial says that it waits; return what it says."""
    wanted = f"(checkpoint of batch {batch})"
    event = events_until(experiment, lambda event: event.type == "trial" and wanted in event.data["notice"])
    return str(event.data["notice"])


def test_a_full_disk_holds_the_training_until_there_is_room(
    kernel: Kernel, torch_end: Any, cluster: Cluster, gate: Gate, disk: SmallDisk
) -> None:
    experiment = _submit(kernel, cluster, disk.path, gate, "5 9")
    visitor = gate.next()
    checkpoint_at(experiment, 3)
    disk.fill()
    visitor.go()
    visitor = gate.next()  # the training has gone on, though the checkpoint of batch 6 is not written
    assert visitor.text == "9"
    said = _waits(experiment, 6)
    assert said == f"waits for disk space in {disk.path} (checkpoint of batch 6)"
    assert said in cluster.shown("experiment", "list")
    assert said in cluster.shown("experiment", "describe", str(experiment.id))
    assert said in kernel.run("print(experiment)").text or said in kernel.run("experiment").text
    visitor.go()
    disk.empty()
    assert ended(experiment, ExperimentState.COMPLETED).restarts == 0
    assert experiment.trials[0].detail().notice == ""
    assert f"The trial {said}." in str(experiment.logs())
    assert_complete_rows(experiment, BATCHES)
    assert kernel.end_of(experiment.id) == torch_end


@pytest.mark.long
def test_pause_and_kill_work_on_a_full_disk(
    kernel: Kernel, torch_end: Any, cluster: Cluster, gate: Gate, disk: SmallDisk
) -> None:
    experiment = _submit(kernel, cluster, disk.path, gate, "5 8")
    visitor = gate.next()
    checkpoint_at(experiment, 3)
    disk.fill()
    visitor.go()
    visitor = gate.next()
    _waits(experiment, 6)
    begun = time.monotonic()
    experiment.pause()
    assert time.monotonic() - begun < 5
    visitor.go()
    assert events_until(experiment, _is_queued_again).data["restarts"] == 0
    assert "no checkpoint: the one before counts" in str(experiment.logs())
    experiment.activate()  # the disk is still full: it goes on from batch 3 and waits at batch 6 again
    visitor = gate.next()
    assert visitor.text == "5"
    visitor.go()
    gate.next().go()
    deadline = time.monotonic() + PATIENCE
    while "(checkpoint of batch 6)" not in experiment.trials[0].detail().notice:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    disk.empty()
    assert ended(experiment, ExperimentState.COMPLETED).restarts == 0
    assert_complete_rows(experiment, BATCHES)
    assert kernel.end_of(experiment.id) == torch_end

    killed = _submit(kernel, cluster, disk.path, gate, "2")
    visitor = gate.next()
    disk.fill()
    visitor.go()
    _waits(killed, 3)
    begun = time.monotonic()
    killed.kill()
    ended(killed, ExperimentState.CANCELED)
    assert time.monotonic() - begun < 15


def _is_queued_again(event: Any) -> bool:
    return event.type == "trial" and event.data["state"] == "QUEUED" and bool(event.data["started"])


@pytest.mark.long
def test_a_gang_that_cannot_write_waits_for_room_without_a_restart(
    kernel: Kernel, cluster: Cluster, gate: Gate, disk: SmallDisk
) -> None:
    kernel.run(RANKED)
    create = CREATE.replace("Digits", "Ranked").replace("=storage)", "=storage, resources={{'slots_per_trial': 2}})")
    kernel.run(f"settings = {{'stops': '5', 'port': {gate.port}}}")
    experiment = cluster.attach(kernel.submit(create.format(path=str(disk.path))))
    visitors = [gate.next(), gate.next()]
    checkpoint_at(experiment, 3)
    disk.fill()
    for visitor in visitors:
        visitor.go()
    events_until(experiment, _is_queued_again)
    trial = experiment.trials[0].detail()
    assert trial.notice == f"waits for disk space in {disk.path}"
    assert trial.restarts == 0
    disk.empty()
    for visitor in (gate.next(), gate.next()):
        visitor.go()
    assert ended(experiment, ExperimentState.COMPLETED).restarts == 0
    assert_complete_rows(experiment, BATCHES)
    assert "It goes on when there is room; no restart is counted." in str(experiment.logs())


class _Intruder:
    """Pickled, it leaves a file behind wherever it is opened."""

    def __init__(self, trace: Path) -> None:
        self.trace = trace

    def __reduce__(self) -> Any:
        return (os.mkdir, (str(self.trace),))


def _intrude(folder: Path, trace: Path) -> None:
    """Add a pickle to a checkpoint in the storage, and make its manifest fit, as who can write there can."""
    (folder / "objects.pkl").write_bytes(pickle.dumps({"weights": _Intruder(trace)}))
    # The storage itself makes the manifest, so that it is as good as any.
    manifest = CheckpointStorage(str(folder.parent)).manifest(folder.name)
    again = folder.rename(folder.parent.parent / "again")
    (again / "manifest.json").unlink()
    CheckpointStorage(str(folder.parent)).publish(again, manifest.model_copy(update={"files": ()}))


@pytest.mark.long
def test_a_checkpoint_that_somebody_has_changed_is_never_opened(
    kernel: Kernel, torch_end: Any, cluster: Cluster, gate: Gate, tmp_path: Path
) -> None:
    store, trace = tmp_path / "store", tmp_path / "trace"
    experiment = _submit(kernel, cluster, store, gate, "8")
    visitor = gate.next()
    checkpoint_at(experiment, 6)
    changed = experiment.checkpoints[-1]
    assert changed.batch == 6
    _intrude(store / changed.uuid, trace)
    visitor.die(signal.SIGKILL)
    gate.next().go()
    ended(experiment, ExperimentState.COMPLETED)
    assert not trace.exists()
    told = str(experiment.logs())
    refusal = f"Checkpoint {changed.uuid}: the file 'manifest.json' is not the one that was saved"
    assert refusal in told
    assert "continues from checkpoint" in told
    assert "at batch 3." in told
    notice = experiment.trials[0].detail().notice
    assert notice.startswith("continued from batch 3, since a later checkpoint is damaged: Checkpoint")
    assert notice in kernel.run("experiment.trials[0]").text
    assert kernel.end_of(experiment.id) == torch_end

    with pytest.raises(CheckpointCorruptError, match="is not the one that was saved") as found:
        changed.load()
    assert changed.uuid in str(found.value)
    assert not trace.exists()


def _damage(path: Path, how: str) -> None:
    content = path.read_bytes()
    if how == "missing":
        path.unlink()
    elif how == "cut short":
        path.write_bytes(content[:-7])
    else:
        path.write_bytes(content[:-7] + bytes([content[-7] ^ 1]) + content[-6:])


@pytest.mark.long
def test_damaged_files_are_named_and_another_checkpoint_takes_their_place(
    kernel: Kernel, torch_end: Any, cluster: Cluster, gate: Gate, tmp_path: Path
) -> None:
    store = tmp_path / "store"
    experiment = _submit(kernel, cluster, store, gate, "8")
    visitor = gate.next()
    checkpoint_at(experiment, 6)
    _damage(store / experiment.checkpoints[-1].uuid / "state_dict.pth", "flipped")  # which only the worker can see
    visitor.die(signal.SIGKILL)
    gate.next().go()
    ended(experiment, ExperimentState.COMPLETED)
    assert kernel.end_of(experiment.id) == torch_end
    notice = experiment.trials[0].detail().notice
    assert notice.startswith("continued from batch 3, since a later checkpoint is damaged: Checkpoint")
    assert f"The trial has {notice}" in str(experiment.logs())

    found = {one.batch: one for one in experiment.checkpoints if one.size}
    for batch, how, says in (
        (15, "cut short", "the file 'state_dict.pth' has"),
        (12, "missing", "the file 'state_dict.pth' is missing"),
        (9, "flipped", "the content of the file 'state_dict.pth' is not what was saved"),
    ):
        one = found[batch]
        _damage(store / one.uuid / "state_dict.pth", how)
        instead = experiment.checkpoints[[other.batch for other in experiment.checkpoints].index(batch) - 1]
        for ask in (one.load, lambda one=one: one.download(tmp_path / one.uuid)):
            with pytest.raises(CheckpointCorruptError, match=says) as raised:
                ask()
            assert one.uuid in str(raised.value)
            assert f"experiment.checkpoint('{instead.uuid[:8]}').load()" in str(raised.value)
            assert f"That of batch {instead.batch} is whole" in str(raised.value)
        assert list((tmp_path / one.uuid).iterdir()) == []
