"""Checkpoints of a training that writes its own files."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from det_native.core.distributed import refuse_other_ranks
from det_native.core.modes import DownloadMode
from det_native.errors import ArgumentError
from det_native.public_names import PublicNames

if TYPE_CHECKING:
    from det_harness.core.run import CoreRun

Selector = Callable[[str], bool]


class CheckpointContext(PublicNames):
    """``context.checkpoint``: the files are the code's own, and they are kept as those of every other checkpoint.

    Examples
    --------
    >>> with context.checkpoint.store_path({"steps_completed": steps}) as (path, uuid):
    ...     (path / "model.json").write_text(json.dumps(weights))
    >>> with context.checkpoint.restore_path(uuid) as path:
    ...     weights = json.loads((path / "model.json").read_text())
    """

    _public: ClassVar[tuple[str, ...]] = (
        "delete",
        "download",
        "get_metadata",
        "restore_path",
        "store_path",
        "upload",
    )

    def __init__(self, run: CoreRun) -> None:
        self._run = run

    @contextmanager
    def store_path(
        self, metadata: Mapping[str, Any] | None = None, *, shard: bool = False
    ) -> Iterator[tuple[Path, str]]:
        """Give a folder and the id of a new checkpoint; at the end of the block the checkpoint is complete.

        Parameters
        ----------
        metadata : mapping, optional
            What is kept with it; ``steps_completed`` says after how many steps it is, by default those that were
            reported last.
        shard : bool
            All processes call this, and each writes files of its own; those of one machine have the same folder.

        Raises
        ------
        StorageError
            If it cannot be written.
        """
        if not shard:
            refuse_other_ranks(self._run.distributed, "context.checkpoint.store_path()")
        with self._run.stored.new(metadata, shard=shard) as (path, uuid):
            yield path, uuid

    def upload(
        self,
        ckpt_dir: str | os.PathLike[str] | None,
        metadata: Mapping[str, Any] | None = None,
        *,
        shard: bool = False,
        selector: Selector | None = None,
    ) -> str:
        """Make a checkpoint of the files in a folder, which stays as it is; return its id.

        Parameters
        ----------
        ckpt_dir : path
            None for a process that has no files, with `shard`.
        metadata : mapping, optional
            See :meth:`store_path`; with `shard` those of all processes are joined.
        shard : bool
            All processes call this, and each gives files of its own. A file that several have has to be the same.
        selector : callable, optional
            Is given the path of each file in the folder, and says whether it belongs to the checkpoint.

        Raises
        ------
        ArgumentError
            If there is no such folder, or files of two processes differ.
        StorageError
            If it cannot be written.
        """
        if not shard:
            refuse_other_ranks(self._run.distributed, "context.checkpoint.upload()")
        return self._run.stored.upload(None if ckpt_dir is None else Path(ckpt_dir), metadata, shard, selector)

    def download(
        self,
        storage_id: str,
        ckpt_dir: str | os.PathLike[str],
        download_mode: DownloadMode = DownloadMode.LocalWorkersShareDownload,
        *,
        selector: Selector | None = None,
    ) -> None:
        """Copy the files of a checkpoint into a folder, each of them verified.

        Parameters
        ----------
        download_mode : DownloadMode
            By default all processes call this, and one of each machine copies.
        selector : callable, optional
            Is given the path of each file, and says whether it is wanted.

        Raises
        ------
        CheckpointNotFoundError, CheckpointCorruptError
        """
        self._run.stored.download(_id(storage_id), Path(ckpt_dir), _shared(download_mode), selector)

    def restore_path(
        self,
        storage_id: str,
        download_mode: DownloadMode = DownloadMode.LocalWorkersShareDownload,
        *,
        selector: Selector | None = None,
    ) -> AbstractContextManager[Path]:
        """Give a folder with the files of a checkpoint, for a block; see :meth:`download`."""
        return self._run.stored.restored(_id(storage_id), _shared(download_mode), selector)

    def get_metadata(self, storage_id: str) -> dict[str, Any]:
        """Return what is kept with a checkpoint, ``steps_completed`` included.

        Raises
        ------
        CheckpointNotFoundError
        """
        return self._run.stored.metadata(_id(storage_id))

    def delete(self, storage_id: str) -> None:
        """Delete a checkpoint.

        Raises
        ------
        CheckpointNotFoundError
        """
        refuse_other_ranks(self._run.distributed, "context.checkpoint.delete()")
        self._run.stored.delete(_id(storage_id))


def _id(storage_id: Any) -> str:
    if not isinstance(storage_id, str) or not storage_id:
        raise ArgumentError(
            f"storage_id={storage_id!r}: give the id of a checkpoint, as store_path() and upload() give it. Where a "
            "training begins anew, det.get_cluster_info().latest_checkpoint is None."
        )
    return storage_id


def _shared(mode: Any) -> bool:
    if not isinstance(mode, DownloadMode):
        raise ArgumentError(
            f"download_mode={mode!r}: give det.core.DownloadMode.LocalWorkersShareDownload or .NoSharedDownload."
        )
    return mode is DownloadMode.LocalWorkersShareDownload
