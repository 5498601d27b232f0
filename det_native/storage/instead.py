"""Which checkpoint can be had instead of a damaged one."""

from __future__ import annotations

from collections.abc import Iterable

from det_native.errors import CheckpointError
from det_native.schema.rest import Checkpoint
from det_native.schema.states import CheckpointState
from det_native.storage.checkpoints import CheckpointStorage


def find_instead(storage: CheckpointStorage, damaged: Checkpoint, known: Iterable[Checkpoint]) -> Checkpoint | None:
    """Return another checkpoint whose content is what was saved; None if there is none.

    The furthest before the damaged one comes first, then the next ones after it. All of its files are read.

    Parameters
    ----------
    known : iterable of Checkpoint
        Those of its trial.
    """
    others = [one for one in known if one.uuid != damaged.uuid and one.state is CheckpointState.COMPLETED]
    newest_first = sorted(others, key=lambda one: (one.batch, one.created), reverse=True)
    before = [one for one in newest_first if one.batch <= damaged.batch]
    after = [one for one in reversed(newest_first) if one.batch > damaged.batch]
    for one in (*before, *after):
        try:
            storage.verify(one.manifest)
        except CheckpointError:
            continue
        return one
    return None
