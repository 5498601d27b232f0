"""What people do with single checkpoints of local runs: note something of them, pin, verify and delete them."""

from __future__ import annotations

from det_native.errors import CheckpointError, NotFoundError, RequestError
from det_native.local.store import LocalStore
from det_native.schema import rest
from det_native.schema.registry import CheckpointChange, CheckpointVerified
from det_native.schema.states import CheckpointState


def change(store: LocalStore, uuid: str, body: CheckpointChange) -> rest.Checkpoint:
    """Change what is noted of a checkpoint, and whether it is pinned; return it.

    Raises
    ------
    NotFoundError
        If the run has no such checkpoint.
    RequestError
        If it is deleted and to be pinned.
    """
    known = _find(store, uuid)
    if body.pinned and known.state is not CheckpointState.COMPLETED:
        raise RequestError(409, f"Checkpoint {uuid} was deleted; there is nothing to pin.")
    gone = set(body.remove_metadata)
    metadata = {key: value for key, value in known.metadata.items() if key not in gone} | body.add_metadata
    pinned = known.pinned if body.pinned is None else body.pinned
    store.write_mark(known.trial_id, uuid, metadata=metadata, pinned=pinned)
    return _find(store, uuid)


def verify(checkpoint: rest.Checkpoint) -> CheckpointVerified:
    """Read all files of a checkpoint, and say whether they are what was saved."""
    from det_harness.program.load import verify_checkpoint

    problem = ""
    if checkpoint.state is not CheckpointState.COMPLETED:
        problem = f"Checkpoint {checkpoint.uuid} was deleted."
    else:
        try:
            verify_checkpoint(checkpoint)
        except CheckpointError as error:
            problem = str(error)
    files = len(checkpoint.manifest.files)
    return CheckpointVerified(uuid=checkpoint.uuid, ok=not problem, problem=problem, files=files, size=checkpoint.size)


def delete(store: LocalStore, uuid: str) -> rest.Checkpoint:
    """Delete a checkpoint that is not pinned, of a run that has ended; return what stays known of it.

    Raises
    ------
    NotFoundError
        If the run has no such checkpoint.
    RequestError
        If it is pinned, or the run goes on.
    """
    from det_harness.program.load import delete_checkpoint

    known = _find(store, uuid)
    if known.state is CheckpointState.COMPLETED:
        if known.pinned:
            raise RequestError(409, f"Checkpoint {uuid} cannot be deleted: it is pinned; unpin it first.")
        if store.running():
            raise RequestError(409, f"Checkpoint {uuid} cannot be deleted: the run {store.id} goes on.")
        mine = store.checkpoints(known.trial_id)
        deleted = {"state": CheckpointState.DELETED}
        store.write_checkpoints(
            known.trial_id, [one.model_copy(update=deleted) if one.uuid == uuid else one for one in mine]
        )
    delete_checkpoint(known)
    return _find(store, uuid)


def _find(store: LocalStore, uuid: str) -> rest.Checkpoint:
    for trial in store.trials():
        for checkpoint in store.checkpoints(trial.id):
            if checkpoint.uuid == uuid:
                return checkpoint
    raise NotFoundError(f"The run {store.id} has no checkpoint {uuid}.")
