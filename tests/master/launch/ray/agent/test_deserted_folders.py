"""What agents leave that are gone for good is removed by the next one of the same master on the machine."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from filelock import FileLock

from det_native.master.launch.ray.agent.folders import AgentFolders
from det_native.storage.publication_notes import FOLDER as NOTES

OWNER = "det_native-1/cluster"
Start = Callable[..., tuple[AgentFolders, FileLock]]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Prepare the folder of an agent with a checkpoint and the note of another."""
    with ExitStack() as locks:

        def prepare(name: str, owner: str = OWNER) -> tuple[AgentFolders, FileLock]:
            folders = AgentFolders(tmp_path / name)
            lock = folders.prepare(owner)
            locks.callback(lock.release)
            (folders.checkpoints / "a").mkdir()
            (folders.checkpoints / "a" / "weights").write_bytes(b"weights")
            (folders.runs / NOTES).mkdir()
            (folders.runs / NOTES / f"{name}.json").write_text("{}")
            return folders, lock

        yield prepare


def _files(folders: AgentFolders) -> list[str]:
    return sorted(path.name for path in folders.root.iterdir())


def test_the_folder_of_an_agent_that_is_gone_is_emptied(start: Start) -> None:
    gone, lock = start("gone")
    lock.release()
    here, _ = start("here")
    here.remove_deserted()
    assert _files(gone) == ["agent.lock"]
    assert [note.name for note in here.notes_left.iterdir()] == ["gone.json"]
    assert (here.checkpoints / "a" / "weights").exists()
    assert (here.cache / "blobs").is_dir()


def test_folders_of_agents_that_live_of_other_masters_and_of_other_machines_stay(start: Start) -> None:
    living, _ = start("living")
    foreign, lock = start("foreign", "det_native-2/cluster")
    lock.release()
    elsewhere, lock = start("elsewhere")
    (elsewhere.root / "host.txt").write_text("another machine")
    lock.release()
    here, _ = start("here")
    before = [_files(folders) for folders in (living, foreign, elsewhere)]
    here.remove_deserted()
    assert [_files(folders) for folders in (living, foreign, elsewhere)] == before


def test_an_agent_gets_its_emptied_folder_again(start: Start) -> None:
    gone, lock = start("gone")
    lock.release()
    start("here")[0].remove_deserted()
    again, _ = start("gone")
    assert again.root == gone.root
    assert (again.checkpoints / "a" / "weights").exists()
