"""What people do with single checkpoints: note something of them, pin, verify and delete them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from det_native.errors import CheckpointError, RequestError
from det_native.master.flow.collection import of_starting_runs
from det_native.master.flow.context import Context
from det_native.master.flow.places_of_checkpoints import storage_of
from det_native.master.store import checkpoints, experiments, protection, trials
from det_native.schema import registry, rest
from det_native.schema.rest import Checkpoint
from det_native.schema.retention import LAST_WHILE_RUNNING
from det_native.schema.states import CheckpointState
from det_native.storage.checkpoints import CheckpointStorage


def change(context: Context, owner: str, uuid: str, body: registry.CheckpointChange) -> rest.Checkpoint:
    """Change what is noted of a checkpoint, and whether it is pinned.

    Raises
    ------
    NotFoundError
        If the owner has no such checkpoint.
    RequestError
        If it is deleted and to be pinned.
    """
    with context.database.write() as transaction:
        known = checkpoints.get(transaction.connection, uuid, owner)
        if body.pinned and known.state is not CheckpointState.COMPLETED:
            raise RequestError(409, f"Checkpoint {uuid} was deleted; there is nothing to pin.")
        return checkpoints.change(transaction, known, body)


def verify(context: Context, checkpoint: rest.Checkpoint) -> registry.CheckpointVerified:
    """Read all files of a checkpoint in its storage, and say whether they are what was saved.

    Raises
    ------
    RequestError
        If the storage does not answer.
    """
    facts = {"uuid": checkpoint.uuid, "files": len(checkpoint.manifest.files), "size": checkpoint.size}
    if checkpoint.state is not CheckpointState.COMPLETED:
        return registry.CheckpointVerified(ok=False, problem=f"Checkpoint {checkpoint.uuid} was deleted.", **facts)
    with context.database.read() as connection:
        experiment = experiments.get(connection, checkpoint.experiment_id)
    storage = storage_of(context, experiment)
    refuse_elsewhere(experiment, storage)
    try:
        storage.verify(checkpoint.manifest)
    except CheckpointError as error:
        return registry.CheckpointVerified(ok=False, problem=str(error), **facts)
    except OSError as error:
        raise does_not_answer(storage.uri, error) from error
    return registry.CheckpointVerified(ok=True, **facts)


def delete(context: Context, owner: str, uuid: str) -> rest.Checkpoint:
    """Delete a checkpoint that nothing needs; of one that is deleted already nothing more.

    Raises
    ------
    NotFoundError
        If the owner has no such checkpoint.
    RequestError
        If something needs it; the message says what.
    """
    with context.database.write() as transaction:
        connection = transaction.connection
        known = checkpoints.get(connection, uuid, owner)
        experiment = experiments.get(connection, known.experiment_id)
        if known.state is CheckpointState.COMPLETED:
            reason = protection.reason_to_keep(connection, uuid)
            if not reason and not trials.get(connection, known.trial_id).state.terminal:
                complete = checkpoints.complete(connection, trial_id=known.trial_id)
                last = sorted(complete, key=lambda one: (one.batch, one.created))[-LAST_WHILE_RUNNING:]
                needed = {one.uuid for one in last} | of_starting_runs(connection, complete)
                if uuid in needed:
                    trial = trials.name_of(connection, known.trial_id)
                    reason = f"trial {trial} goes on, and may have to continue from it; end it first"
            if reason:
                raise RequestError(409, f"Checkpoint {uuid} cannot be deleted: {reason}.")
            checkpoints.set_deleted(transaction, [uuid])
    storage = storage_of(context, experiment)
    try:
        storage.delete(uuid)
    except OSError as error:
        raise does_not_answer(storage.uri, error) from error
    with context.database.read() as connection:
        return checkpoints.get(connection, uuid, owner)


def refuse_elsewhere(experiment: rest.Experiment, storage: CheckpointStorage) -> None:
    """Raise RequestError, with where they are, for checkpoints that a kernel has written on another machine."""
    if experiment.in_kernel and storage.uri.startswith("/") and not Path(storage.uri).is_dir():
        text = f"lie in {storage.uri} on the machine of its kernel: only a process there can read them"
        raise RequestError(424, f"The checkpoints of experiment {experiment.id} {text}.")


def does_not_answer(uri: str, error: OSError) -> RequestError:
    """Return what to say where a storage fails; with a status that no client repeats, as it has waited here already."""
    return RequestError(424, f"The storage {uri} failed: {str(error).rstrip('.') or type(error).__name__}. Try again.")


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
