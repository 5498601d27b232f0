"""Files whose state no cell that runs again leaves: at their place in the program they become what they are here."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path

from det_native.capture.log import ExecutionLog
from det_native.capture.seen_files import SeenFiles
from det_native.schema.manifests import SettledEntry


def settled_paths(
    log: ExecutionLog, runs: Sequence[int], place_after: Callable[[int], int], root: Path, seen: SeenFiles
) -> Callable[[Collection[str]], list[SettledEntry]]:
    """Return a function: for the files of a bundle it gives the paths to put right on the worker, each with its cell.

    Parameters
    ----------
    runs : sequence of int
        The executions that run again; the last one makes the call.
    place_after : callable
        Gives the first cell of the program that ran after an execution.
    root : Path
        The folder of the user's files.
    """

    def settled(files: Collection[str]) -> list[SettledEntry]:
        gone = ((Path(path), run) for path, run in _removed(log, runs))
        inside = ((path.relative_to(root).as_posix(), run) for path, run in gone if root in path.parents)
        found = {(text, run) for text, run in inside if text not in files}
        written = ((text, seen.last_writer(root / text)) for text in files)
        found |= {(text, run) for text, run in written if run is not None and run < runs[-1]}
        return [SettledEntry(path=text, before_cell=place_after(run)) for text, run in sorted(found)]

    return settled


def _removed(log: ExecutionLog, runs: Sequence[int]) -> Iterator[tuple[str, int]]:
    """Yield what runs that run again have made and others removed, with the run after which it is gone.

    Where nobody saw who removed it, as a command, it is gone when the call begins.
    """
    made: set[str] = set()
    removed: set[str] = set()
    for logged in log.executions[: runs[-1] + 1]:
        if (paths := logged.seen.paths) is None:
            continue
        if logged.index in runs:
            made.update(paths.writes())
            removed.update(paths.removed())
        else:
            yield from ((path, logged.index) for path in paths.gone if not made.isdisjoint(_with_folders(path)))
    for path in made:
        if not os.path.lexists(path) and removed.isdisjoint(_with_folders(path)):
            yield path, runs[-1] - 1


def _with_folders(path: str) -> list[str]:
    return [path, *map(str, Path(path).parents)]
