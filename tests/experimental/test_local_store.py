"""Which local runs stay in DET_HOME."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from det_harness.local import bundle
from det_native.local import store as local_store
from det_native.local.store import LocalStore
from local_experiments import write_experiment

import det_native as det
from det_native import PROTOCOL
from det_native.capture.interpreter import current_interpreter
from det_native.client.handles import Experiment
from det_native.errors import NotFoundError
from det_native.schema.manifests import BundleManifest, FileEntry, Program
from det_native.schema.outputs import LoggedMedium, Medium
from det_native.schema.states import ExperimentState
from det_native.storage.blobs import BlobStore


def root() -> Path:
    return Path(os.environ["DET_HOME"]) / "local"


def numbers() -> list[int]:
    return sorted(int(path.name) for path in root().iterdir() if path.name.isdigit())


def blobs() -> set[str]:
    return {path.name for path in (root() / "blobs").glob("??/*")}


def keep(experiment: Experiment, *contents: bytes) -> set[str]:
    """Keep a program of some files with an experiment; return their hashes."""
    from det_harness.local.bundle import keep_bundle

    by_hash = {hashlib.sha256(content).hexdigest(): content for content in contents}
    files = [
        FileEntry(path=f"file{index}", sha256=sha256, size=len(content))
        for index, (sha256, content) in enumerate(by_hash.items())
    ]
    manifest = BundleManifest(
        protocol=PROTOCOL,
        program=Program(kind="script", framework="keras", command=("file0",)),
        files=files,
        interpreter=current_interpreter(),
    )
    keep_bundle(root() / str(experiment.id).removeprefix("local-"), manifest, by_hash)
    return set(by_hash)


def test_the_last_runs_stay_and_those_in_use(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_store, "KEPT", 2)
    held = write_experiment()
    for _ in range(4):
        write_experiment()
    assert numbers() == [1, 4, 5]
    assert held.history == {"loss": [0.5], "val_loss": [1.0]}
    with pytest.raises(NotFoundError, match=r"no local experiment 'local-2' .* the last 2 runs are kept"):
        det.attach("local-2")
    del held
    write_experiment()
    assert numbers() == [5, 6]
    assert not list(root().glob(".removed-*"))


def test_numbers_are_not_given_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_store, "KEPT", 1)
    assert [write_experiment().id for _ in range(3)] == ["local-1", "local-2", "local-3"]


def test_numbers_of_deleted_runs_are_not_given_again() -> None:
    write_experiment().delete(yes=True)
    second = write_experiment()
    assert second.id == "local-2"
    (root() / "last-number").unlink()  # a home of an earlier version
    second.delete(yes=True)
    assert write_experiment().id == "local-3"
    (root() / "last-number").write_text("")
    assert write_experiment().id == "local-4"


def test_kernels_that_begin_runs_at_once_get_different_numbers() -> None:
    code = (
        "from det_native.local.store import LocalStore\n"
        "import shutil\n"
        "for _ in range(20):\n"
        "    store = LocalStore.create()\n"
        "    print(store.number)\n"
        "    shutil.rmtree(store.folder)\n"
    )
    kernels = [subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) for _ in range(2)]
    given = [int(number) for kernel in kernels for number in kernel.communicate()[0].split()]
    assert sorted(given) == list(range(1, 41))


@pytest.mark.parametrize(
    "keeps",
    [
        lambda run: run.add_labels("baseline"),
        lambda run: run.set_notes("seen"),
        lambda run: run.set_description("a baseline"),
        lambda run: run.rename("the best"),
        lambda run: run.move_to("vision/digits"),
        lambda run: run.archive(),
        lambda run: LocalStore.find(run.id).write_mark(1, "a", metadata={}, pinned=True),
        lambda run: LocalStore.find(run.id).write_mark(1, "a", metadata={"seen": True}, pinned=False),
    ],
    ids=["labels", "notes", "description", "name", "project", "archived", "pinned", "metadata"],
)
def test_runs_that_people_keep_stay_and_do_not_count(
    monkeypatch: pytest.MonkeyPatch, keeps: Callable[[Experiment], None]
) -> None:
    monkeypatch.setattr(local_store, "KEPT", 2)
    keeps(write_experiment())
    for _ in range(4):
        write_experiment()
    assert numbers() == [1, 4, 5]
    assert det.attach("local-1").history == {"loss": [0.5], "val_loss": [1.0]}


def test_a_run_that_people_keep_no_longer_goes_with_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_store, "KEPT", 1)
    write_experiment().add_labels("tried")
    LocalStore.find(write_experiment().id).write_mark(1, "a", metadata={}, pinned=True)
    write_experiment()
    assert numbers() == [1, 2, 3]
    det.attach("local-1").remove_labels("tried")
    LocalStore.find("local-2").write_mark(1, "a", metadata={}, pinned=False)
    write_experiment()
    assert numbers() == [4]


def test_what_only_removed_runs_needed_goes_with_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_store, "KEPT", 2)
    first = keep(write_experiment(), b"common", b"first")
    second = keep(write_experiment(), b"common", b"second")
    assert len(first & second) == 1
    assert blobs() == first | second
    write_experiment()
    assert numbers() == [2, 3]
    assert blobs() == second
    write_experiment()
    assert numbers() == [3, 4]
    assert blobs() == set()


def test_what_a_run_has_logged_stays_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_store, "KEPT", 2)
    keep(write_experiment(), b"first")
    store = LocalStore.find(str(write_experiment().id))
    contents = BlobStore(bundle.blobs_of(store.folder))
    logged, young = (hashlib.sha256(content).hexdigest() for content in (b"logged", b"young"))
    contents.put(logged, b"logged")
    item = LoggedMedium(batch=1, kind="text", name="note", sha256=logged, size=6, format="txt")  # type: ignore[arg-type]
    store.write_media(1, [Medium.of(item, 1)])
    write_experiment()
    [medium] = store.media(1)
    assert (medium.name, medium.trial_id, store.medium_content(medium)) == ("note", 1, b"logged")
    assert blobs() == {logged}
    contents.put(young, b"young")  # it is reported a moment later
    write_experiment()
    assert young in blobs()


def test_a_run_that_ends_while_it_is_asked_for_has_not_died(monkeypatch: pytest.MonkeyPatch) -> None:
    experiment = write_experiment()
    store = LocalStore.find(str(experiment.id))
    ended = store.experiment()
    store.write_experiment(ended.model_copy(update={"state": ExperimentState.ACTIVE}))

    def ends_just_now(_: LocalStore) -> bool:
        store.write_experiment(ended)
        return False

    monkeypatch.setattr(LocalStore, "running", ends_just_now)
    assert store.experiment() == ended
    monkeypatch.setattr(LocalStore, "running", lambda _: False)
    store.write_experiment(ended.model_copy(update={"state": ExperimentState.ACTIVE}))
    assert store.experiment().state is ExperimentState.CANCELED
