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
    """Return what tells of the files of a bundle which paths are put right on the worker, and before which cell.

    Parameters
    ----------
    log : ExecutionLog
    runs : sequence of int
        The executions that run again; the last one makes the call.
    place_after : callable
        Gives the first cell of the program that ran after an execution.
    root : Path
        The folder of the user's files.
    seen : SeenFiles
    """

    def settled(files: Collection[str]) -> list[SettledEntry]:
        found: dict[str, SettledEntry] = {}
        for path, run in removed_paths(log, runs):
            target = Path(path)
            if target.is_relative_to(root) and target != root:
                text = target.relative_to(root).as_posix()
                if text not in files:
                    found[text] = SettledEntry(path=text, before_cell=place_after(run))
        for text in files:
            writer = seen.last_writer(root / text)
            if writer is not None and writer < runs[-1]:
                awaited = not seen.was_read(root / text, writer)
                found[text] = SettledEntry(path=text, before_cell=place_after(writer), awaited=awaited)
        return sorted(found.values(), key=lambda entry: (entry.before_cell, entry.path))

    return settled


def removed_paths(log: ExecutionLog, runs: Sequence[int]) -> Iterator[tuple[str, int]]:
    """Yield what runs that run again have made and others removed, each with the run after which it is gone.

    That may be one that runs again, and fails there. Nobody may have seen how it went, as where a command removed it:
    then it is gone when the call begins.
    """
    seen = {each.index: each.seen.paths for each in log.executions[: runs[-1] + 1] if each.seen.paths is not None}
    made: dict[str, int] = {}
    removers: dict[str, int] = {}
    folders: set[str] = set()  # in which something was made
    for index, paths in seen.items():
        removed = dict.fromkeys(paths.removed(), index)
        removers |= removed
        if index in runs:
            written = {path: index for path in paths.writes() if not (path in removed and path in made)}
            made |= written
            folders.update(folder for path in written for folder in _parents(path))
        else:
            for path in paths.gone:
                if path in folders or path in made or any(folder in made for folder in _parents(path)):
                    yield path, index
    for path, maker in made.items():
        if not os.path.lexists(path):
            remover = max((removers.get(each, -1) for each in (path, *_parents(path))), default=-1)
            if remover not in (maker, runs[-1]):
                yield path, remover if remover > maker else runs[-1] - 1


def _parents(path: str) -> list[str]:
    return [str(folder) for folder in Path(path).parents]
