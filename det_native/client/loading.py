"""Checkpoints of a master's: their files, verified, and the models in them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from pathlib import Path, PurePosixPath
from typing import Any

from det_native.errors import CheckpointCorruptError
from det_native.schema import rest
from det_native.schema.environment import TrialEnvironment
from det_native.schema.manifests import BundleManifest, CheckpointFile, EarlierTraining


class ArrivingFile:
    """A file of a checkpoint on its way here: after a cut it goes on where it was, and is verified as a whole.

    Parameters
    ----------
    uuid : str
        The checkpoint.
    file : CheckpointFile
    directory : Path
        Of the checkpoint, here.

    Raises
    ------
    CheckpointCorruptError
        If the path would leave the directory.
    """

    def __init__(self, uuid: str, file: CheckpointFile, directory: Path) -> None:
        self.uuid = uuid
        self.file = file
        self.offset = 0
        self._target = directory.joinpath(*_safe_parts(file.path))
        self._partial = self._target.with_name(f".{self._target.name}.part")
        self._digest = hashlib.sha256()

    def take(self, chunks: Iterable[bytes]) -> None:
        """Write what arrives from `offset` on."""
        self._target.parent.mkdir(parents=True, exist_ok=True)
        with self._partial.open("ab" if self.offset else "wb") as stream:
            for chunk in chunks:
                stream.write(chunk)
                self._digest.update(chunk)
                self.offset += len(chunk)

    def finish(self) -> None:
        """Verify the whole, and give it its name.

        Raises
        ------
        CheckpointCorruptError
            If the content does not match the manifest.
        """
        self._partial.touch()
        if self.offset != self.file.size or self._digest.hexdigest() != self.file.sha256:
            raise CheckpointCorruptError(
                f"Checkpoint {self.uuid}: the content of the file {self.file.path!r} is not what was saved."
            )
        self._partial.replace(self._target)

    def forget(self) -> None:
        """Remove half a file: it is nothing."""
        self._partial.unlink(missing_ok=True)


def load_checkpoint(
    *,
    bundle: BundleManifest,
    read_blob: Callable[[str], bytes],
    directory: Path,
    checkpoint: rest.Checkpoint,
    config: dict[str, Any],
    trial_seed: int,
    files: Callable[[EarlierTraining], AbstractContextManager[Path]],
) -> Any:
    """Rebuild the user's model or trial from the experiment's code and load a checkpoint into it.

    Parameters
    ----------
    bundle : BundleManifest
    read_blob : callable
        Gives the raw content of a blob by its hash.
    directory : Path
        The checkpoint's files.
    checkpoint : rest.Checkpoint
    config : dict
        The experiment's configuration.
    trial_seed : int
    files : callable
        Gives a folder with the files of the checkpoint of an earlier training of the program, for a block.
    """
    from det_harness.program.load import load_checkpoint as load

    environment = TrialEnvironment(
        config=config,
        hparams=checkpoint.manifest.hparams,
        experiment_id=checkpoint.experiment_id,
        trial_id=checkpoint.trial_id,
        trial_seed=trial_seed,
    )
    return load(bundle, read_blob, directory, checkpoint.manifest, environment, files)


def _safe_parts(path: str) -> tuple[str, ...]:
    parts = PurePosixPath(path).parts
    unsafe = not parts or path.startswith("/") or "\\" in path or "\0" in path
    if unsafe or any(part in (".", "..") or ":" in part for part in parts):
        raise CheckpointCorruptError(f"The checkpoint's path {path!r} leaves its folder.")
    return parts
