"""What the log of a trial says of what its search decides."""

from __future__ import annotations

from det_native.schema.lengths import Length
from det_native.schema.manifests import CheckpointManifest

STOPPED_EARLY = "stopped early by the search"


def trained_on(length: Length) -> str:
    """Return the line of a trial that goes on."""
    return (
        f"The search trains this trial on, to {length.units:,} {length.unit}; it was among the best of those that came "
        "this far."
    )


def units_done(length: Length, batches: int, target_batches: int) -> int:
    """Return how much of a trial's length its batches are, in the unit of the length and rounded down."""
    return length.units * batches // target_batches if target_batches else 0


def stopped_early(done: Length) -> str:
    """Return what is to be known of a trial that its search has stopped."""
    return f"{STOPPED_EARLY}, after {done.units:,} {done.unit}: others had come to more by then"


def begins_with(trial: int | str | None, source: CheckpointManifest) -> str:
    """Return the line of a trial that begins with the weights of another one."""
    return (
        f"This trial begins with the weights of trial {trial} after its batch {source.batch:,} (checkpoint "
        f"{source.uuid})."
    )
