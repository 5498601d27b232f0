"""What the log of a trial says of the stages of its search, the same on a master and in a local run."""

from __future__ import annotations

from det_native.schema.lengths import Length
from det_native.schema.manifests import CheckpointManifest


def trained_on(length: Length) -> str:
    """Return the line of a trial that goes on."""
    return (
        f"The search trains this trial on, to {length.units:,} {length.unit}; it was among the best of those that came "
        "this far."
    )


def begins_with(trial: int | None, source: CheckpointManifest) -> str:
    """Return the line of a trial that begins with the weights of another one."""
    return (
        f"This trial begins with the weights of trial {trial} after its batch {source.batch:,} (checkpoint "
        f"{source.uuid})."
    )
