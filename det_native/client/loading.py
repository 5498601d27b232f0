"""Checkpoints of a master's: their files, verified, and the models in them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from pathlib import Path, PurePosixPath
from typing import Any

from det_native.errors import CheckpointCorruptError
from det_native.schema import rest
from det_native.schema.environment import TrialEnvironment
from det_native.schema.manifests import BundleManifest, CheckpointFile


def receive_file(uuid: str, file: CheckpointFile, chunks: Iterable[bytes], directory: Path) -> None:
    """Write one file of a checkpoint (its `uuid`) while it arrives, and verify it.

    Raises
    ------
    CheckpointCorruptError
        If the content does not match the manifest, or the path would leave the directory.
    """
    target = directory.joinpath(*_safe_parts(file.path))
    target.parent.mkdir(parents=True, exist_ok=True)
    digest, size = hashlib.sha256(), 0
    with target.open("xb") as stream:
        try:
            for chunk in chunks:
                digest.update(chunk)
                size += len(chunk)
                stream.write(chunk)
        except BaseException:
            target.unlink()  # half of it is nothing
            raise
    if size != file.size or digest.hexdigest() != file.sha256:
        raise CheckpointCorruptError(f"Checkpoint {uuid}: the content of the file {file.path!r} is not what was saved.")


def load_checkpoint(
    *,
    bundle: BundleManifest,
    read_blob: Callable[[str], bytes],
    directory: Path,
    checkpoint: rest.Checkpoint,
    config: dict[str, Any],
    trial_seed: int,
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
    """
    from det_harness.program.load import load_checkpoint as load

    environment = TrialEnvironment(
        config=config,
        hparams=checkpoint.manifest.hparams,
        experiment_id=checkpoint.experiment_id,
        trial_id=checkpoint.trial_id,
        trial_seed=trial_seed,
    )
    return load(bundle, read_blob, directory, checkpoint.manifest, environment)


def _safe_parts(path: str) -> tuple[str, ...]:
    parts = PurePosixPath(path).parts
    unsafe = not parts or path.startswith("/") or "\\" in path or "\0" in path
    if unsafe or any(part in (".", "..") or ":" in part for part in parts):
        raise CheckpointCorruptError(f"The checkpoint's path {path!r} leaves its folder.")
    return parts
