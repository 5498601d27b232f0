"""Checkpoints whose files the user's code writes, on the services of a trial."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any
from uuid import uuid4

from det_harness.core import sharded
from det_harness.core.state import MOST_STEPS, CoreState
from det_native.errors import ArgumentError, RankLostError
from det_native.schema.manifests import CheckpointManifest

_STEPS = "steps_completed"
# What manifests have under these names is ours.
_OURS = (CheckpointManifest.METRICS, "printed")


class StoredCheckpoints:
    """Makes and reads checkpoints for :class:`det_native.core.CheckpointContext`."""

    def __init__(self, run: CoreState) -> None:
        self._run = run

    @contextmanager
    def new(self, metadata: Mapping[str, Any] | None, *, shard: bool) -> Iterator[tuple[Path, str]]:
        """Give a folder for the files of a checkpoint, and its id."""
        run = self._run
        if not shard:
            folder = run.services.checkpoints.workspace()
            with _removed(folder):
                uuid = str(uuid4())
                yield folder, uuid
                self._save(folder, uuid, _checked(metadata))
            return
        distributed = run.distributed
        uuid = distributed.broadcast(str(uuid4()))
        own = self._shard_folder() if distributed.local_rank == 0 else None
        folder = Path(distributed.broadcast_local(None if own is None else str(own)))
        with _removed(own) if own is not None else nullcontext():
            with self._together():
                yield folder, uuid
            self._save_shards({} if own is None else sharded.files_of(own, None), uuid, metadata, own)

    def upload(
        self,
        folder: Path | None,
        metadata: Mapping[str, Any] | None,
        shard: bool,
        selector: sharded.Selector | None,
    ) -> str:
        """Make a checkpoint of files; return its id."""
        run = self._run
        if not shard:
            if folder is None:
                raise ArgumentError(
                    "context.checkpoint.upload(None): give the folder with the files of the checkpoint."
                )
            facts = _checked(metadata)  # before large files are copied
            files = sharded.files_of(folder, selector)
            workspace = run.services.checkpoints.workspace()
            with _removed(workspace):
                sharded.copy(files, workspace)
                uuid = str(uuid4())
                self._save(workspace, uuid, facts)
            return uuid
        uuid = str(run.distributed.broadcast(str(uuid4())))
        with self._together():
            files = sharded.files_of(folder, selector)
        self._save_shards(files, uuid, metadata, None)
        return uuid

    def download(self, uuid: str, target: Path, shared: bool, selector: sharded.Selector | None) -> None:
        """Copy the files of a checkpoint into a folder."""

        def copy() -> None:
            target.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(prefix=".det-", dir=target) as temporary:
                folder = Path(temporary) / "files"
                self._fetch(uuid, folder, selector)
                _move(folder, target)

        self._once(copy, shared)

    @contextmanager
    def restored(self, uuid: str, shared: bool, selector: sharded.Selector | None) -> Iterator[Path]:
        """Give a folder with the files of a checkpoint."""
        distributed = self._run.distributed
        if not shared:
            with tempfile.TemporaryDirectory(prefix="det-restore-") as temporary:
                folder = Path(temporary) / "checkpoint"
                self._fetch(uuid, folder, selector)
                yield folder
            return
        own = Path(tempfile.mkdtemp(prefix="det-restore-")) if distributed.local_rank == 0 else None
        try:
            folder = Path(distributed.broadcast_local(None if own is None else str(own))) / "checkpoint"
            self._once(lambda: self._fetch(uuid, folder, selector), shared)
            with self._together():
                yield folder
        finally:
            if own is not None:
                shutil.rmtree(own, ignore_errors=True)

    def metadata(self, uuid: str) -> dict[str, Any]:
        """Return what is kept with a checkpoint."""
        manifest = self._run.services.checkpoints.manifest(uuid)
        return {_STEPS: manifest.batch, **manifest.metadata}

    def delete(self, uuid: str) -> None:
        """Delete a checkpoint."""
        self._run.services.checkpoints.delete(uuid)

    # -- writing

    def _save(self, folder: Path, uuid: str, metadata: dict[str, Any]) -> None:
        """Publish the files of a folder, which is used up."""
        run = self._run
        run.pass_rows()
        steps = _steps(metadata.setdefault(_STEPS, run.steps))
        run.begin(steps)
        run.done(steps)
        run.services.settle()
        checkpoints = run.services.checkpoints

        def write(target: Path) -> None:
            _move(folder, target)

        checkpoints.save(steps, write, uuid=uuid, repeatable=False, metadata=metadata)
        checkpoints.wait()
        run.services.schedule.checkpointed()

    def _save_shards(
        self, files: dict[str, Path], uuid: str, metadata: Mapping[str, Any] | None, own: Path | None
    ) -> None:
        run = self._run
        distributed = run.distributed
        with self._together():
            checked = _checked(metadata)
        part = sharded.own_part(files, distributed)
        joined = sharded.joined_metadata(distributed.allgather(checked))
        first = distributed.rank == 0
        on_first_machine = distributed.rank - distributed.local_rank == 0
        workspace: Path | None = None
        if own is not None and first:  # the files of this machine lie where they are to be already
            part, workspace = {}, own
        elif first:
            workspace = run.services.checkpoints.workspace()
        place = distributed.broadcast(None if workspace is None else str(workspace))
        try:
            with self._together():
                sharded.gathered(part, Path(place) if on_first_machine else None, distributed)
            with self._together():
                if first:
                    self._save(Path(place), uuid, joined)
        finally:
            if workspace is not None:
                shutil.rmtree(workspace, ignore_errors=True)

    def _shard_folder(self) -> Path:
        """Return where the processes of this machine write their files."""
        if self._run.distributed.rank == 0:
            return self._run.services.checkpoints.workspace()
        return Path(tempfile.mkdtemp(prefix="det-checkpoint-"))

    # -- reading

    def _fetch(self, uuid: str, folder: Path, selector: Callable[[str], bool] | None) -> None:
        manifest = self._run.services.checkpoints.fetch(uuid, folder, selector)
        self._run.restored(manifest)

    def _once(self, do: Callable[[], None], shared: bool) -> None:
        """Do something in each process, or in one of each machine for all of them."""
        if not shared:
            do()
            return
        with self._together():
            if self._run.distributed.local_rank == 0:
                do()

    @contextmanager
    def _together(self) -> Iterator[None]:
        """Have all processes fail where one does: the others would wait for it; a collective call at its end.

        Raises
        ------
        RankLostError
            In a process that has not failed by itself.
        """
        distributed, failure = self._run.distributed, None
        try:
            yield
        except Exception as error:
            failure = error
            raise
        finally:
            said = None if failure is None else f"{type(failure).__name__}: {failure}"
            others = distributed.allgather(said)
            rank = next((rank for rank, text in enumerate(others) if text is not None), None)
            if rank is not None and failure is None:
                raise RankLostError(f"Process {rank} of this trial could not do its part: {others[rank]}")


@contextmanager
def _removed(folder: Path) -> Iterator[None]:
    """Remove a folder at the end of the block, if it is there."""
    try:
        yield
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _move(folder: Path, target: Path) -> None:
    """Move all that is in a folder into another one, which may have some of it already."""
    for path in sorted(folder.iterdir()):
        place = target / path.name
        if path.is_dir() and place.is_dir() and not path.is_symlink():
            _move(path, place)
        elif place.exists() and not place.is_dir():
            os.replace(path, place)
        else:
            shutil.move(path, place)


def _checked(metadata: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return metadata as they are kept.

    Raises
    ------
    ArgumentError
        If JSON has nothing like them.
    """
    if metadata is None:
        return {}
    if not isinstance(metadata, Mapping):
        raise ArgumentError(f"metadata={metadata!r:.60}: give a dictionary, {{'steps_completed': 100}}.")
    ours = next((name for name in _OURS if name in metadata), None)
    if ours is not None:
        raise ArgumentError(f"metadata has the name {ours!r}, which is det_native's own: take another one.")
    try:
        found: dict[str, Any] = json.loads(json.dumps(dict(metadata), default=_as_python))
    except (TypeError, ValueError) as error:
        raise ArgumentError(f"metadata of a checkpoint are what JSON can have: {error}.") from error
    if _STEPS in found:
        _steps(found[_STEPS])
    return found


def _as_python(value: Any) -> Any:
    """Return a number of NumPy or a tensor with one element as Python has it."""
    if hasattr(value, "item"):
        return value.item()
    raise TypeError(f"Object of type {type(value).__name__} is not JSON serializable")


def _steps(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= MOST_STEPS:
        raise ArgumentError(f"metadata['steps_completed'] is {value!r}: give a whole number from 0 to {MOST_STEPS}.")
    return value
