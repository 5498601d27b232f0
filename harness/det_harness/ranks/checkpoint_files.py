"""The files of a checkpoint that every rank has its own of, brought to the first rank, which writes them.

A rank other than the first has them in ``ranks/<rank>/`` of the checkpoint.
"""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from det_harness.ranks.communicator import Communicator
from det_native.errors import CheckpointError

logger = logging.getLogger("det_harness")

_FOLDER = "ranks"


def check_same(communicator: Communicator, progress: Any) -> None:
    """See that all ranks have found the same checkpoint, or none, to continue from; a collective call.

    Parameters
    ----------
    progress
        What tells the checkpoint of this rank from others, such as how far it is; None without one.
    """
    if any(other != progress for other in communicator.all_gather_object(progress)):
        raise CheckpointError(
            "The slots of the trial read different checkpoints, since the storage gave one of them to some slots "
            "only. Look at the storage, then start the trial again."
        )


def own_folder(folder: Path, communicator: Communicator) -> Path | None:
    """Return where a rank's own files lie; None, said once, if the checkpoint was made on another number of slots."""
    made_by = count(folder)
    if made_by == communicator.size:
        return folder_of(folder, communicator.rank)
    if communicator.rank == 0:
        logger.warning(
            "The checkpoint was made on %d slot(s), the trial has %d now: it goes on, but not with the same bits.",
            made_by,
            communicator.size,
        )
    return None


def packed(write: Callable[[Path], None]) -> dict[str, bytes]:
    """Return what `write` puts into an empty folder, by the names of the files."""
    with tempfile.TemporaryDirectory(prefix="det-rank-") as temporary:
        folder = Path(temporary)
        write(folder)
        return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def unpack(folder: Path, ranks: Sequence[dict[str, bytes] | None]) -> None:
    """Write the files of the ranks into the folder of a checkpoint; the first rank's are there already."""
    for rank, files in enumerate(ranks):
        if files is None:
            continue
        own = folder / _FOLDER / str(rank)
        own.mkdir(parents=True)
        for name, content in files.items():
            (own / name).write_bytes(content)


def folder_of(folder: Path, rank: int) -> Path | None:
    """Return the folder of a rank's own files in a checkpoint; None if the checkpoint has none for that rank."""
    if rank == 0:
        return folder
    own = folder / _FOLDER / str(rank)
    return own if own.is_dir() else None


def count(folder: Path) -> int:
    """Return how many ranks a checkpoint was made by."""
    others = folder / _FOLDER
    return 1 + (len(list(others.iterdir())) if others.is_dir() else 0)
