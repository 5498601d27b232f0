"""Local runs are deleted: what that frees, and the folder with all that only this run needs."""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from det_native.errors import NotFoundError, RequestError
from det_native.local.keeping import keep_number
from det_native.local.store import LocalStore
from det_native.schema.life import Deletion


def preview(store: LocalStore) -> Deletion:
    """Return what the deletion of a run would free, and what stands in its way."""
    from det_harness.local.bundle import blob_sizes, only_hashes

    detail = store.experiment()
    sizes = blob_sizes(store.folder, only_hashes(store.folder))
    trials = [trial.id for trial in store.trials()]
    checkpoints = sum(_bytes_in(store.folder / "trials" / str(trial) / "files") for trial in trials)
    obstacles = []
    if not detail.state.terminal:
        obstacles.append(
            f"Experiment {store.id} goes on and cannot be deleted: Ctrl-C, or the stop button of its notebook, ends it."
        )
    return Deletion(
        experiment_id=store.id,
        name=detail.name,
        trials=len(trials),
        checkpoints=sum(
            Path(each.location).is_dir() for trial in trials for each in store.checkpoints(trial) if each.location
        ),
        checkpoint_bytes=checkpoints,
        blobs=len(sizes),
        blob_bytes=sum(sizes),
        media=sum(len(store.media(trial)) for trial in trials),
        output_bytes=_bytes_in(store.folder) - checkpoints,
        obstacles=obstacles,
    )


def delete(store: LocalStore) -> Deletion:
    """Delete a run with all that only it needs; return what that has freed.

    Raises
    ------
    RequestError
        If it goes on.
    NotFoundError
        If somebody else has deleted it at this moment.
    """
    from det_harness.local.bundle import drop_blobs, only_hashes

    freed = preview(store)
    if freed.obstacles:
        raise RequestError(409, freed.obstacles[0])
    root = store.folder.parent
    target = root / f".removed-{store.number}-{os.getpid()}"
    hashes = only_hashes(store.folder)
    keep_number(root, store.number)
    try:
        store.folder.rename(target)
    except FileNotFoundError:
        raise NotFoundError(f"the run {store.id} was deleted from this machine") from None
    with suppress(FileNotFoundError):  # another kernel tidies up at the same moment
        shutil.rmtree(target)
    drop_blobs(root, hashes)
    return freed.model_copy(update={"deleted": datetime.now(UTC).isoformat(timespec="milliseconds")})


def _bytes_in(folder: Path) -> int:
    total = 0
    for root, _, files in os.walk(folder):
        for name in files:
            with suppress(OSError):
                total += (Path(root) / name).lstat().st_size
    return total
