"""The manifest of a checkpoint as a file, and what is said where a checkpoint is not what its manifest says."""

from __future__ import annotations

from pydantic import ValidationError

from det_native.errors import CheckpointCorruptError
from det_native.schema.manifests import CheckpointFile, CheckpointManifest, Sha256
from det_native.storage.paths import UnsafePathError, check_relative

MANIFEST = "manifest.json"


def encode(manifest: CheckpointManifest) -> bytes:
    """Return what is in the file."""
    return manifest.model_dump_json(indent=1).encode()


def decode(uuid: str, content: bytes) -> CheckpointManifest:
    """Return the manifest that the file of a checkpoint has.

    Raises
    ------
    CheckpointCorruptError
        If it is no manifest, or that of another checkpoint.
    """
    try:
        manifest = CheckpointManifest.model_validate_json(content)
        for file in manifest.files:
            check_relative(file.path)
    except (ValidationError, UnsafePathError) as error:
        raise CheckpointCorruptError(f"Checkpoint {uuid}: the file {MANIFEST!r} is damaged.") from error
    if manifest.uuid != uuid:
        raise CheckpointCorruptError(f"Checkpoint {uuid}: the file {MANIFEST!r} is that of {manifest.uuid}.")
    return manifest


def refuse_other(manifest: CheckpointManifest, expected: Sha256) -> None:
    """Raise CheckpointCorruptError if a manifest has another hash than the one that was reported."""
    if manifest.sha256 != expected:
        raise CheckpointCorruptError(
            f"Checkpoint {manifest.uuid}: the file {MANIFEST!r} is not the one that was saved: somebody has changed "
            "it. Nothing of this checkpoint is used."
        )


def missing(uuid: str, file: CheckpointFile) -> str:
    """Say that a file is not there."""
    return f"Checkpoint {uuid}: the file {file.path!r} is missing."


def changed(uuid: str, file: CheckpointFile) -> str:
    """Say that a file has another content."""
    return f"Checkpoint {uuid}: the content of the file {file.path!r} is not what was saved."


def resized(uuid: str, file: CheckpointFile, size: int) -> str:
    """Say that a file has another size."""
    return f"Checkpoint {uuid}: the file {file.path!r} has {size} bytes where the manifest says {file.size}."
