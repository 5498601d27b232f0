"""Files that the code of a run writes in the working directory of the user's process: kept and reported at its end."""

from __future__ import annotations

import itertools
import logging
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from det_native.errors import DetError
from det_native.schema.home import Home
from det_native.schema.outputs import MOST_OF_REPORT, WrittenFile
from det_native.storage.blobs import BlobStore
from det_native.storage.file_states import Folder, State, walk

#: In a folder with more files, which may be a home folder, nobody looks for those that are new.
MOST_WALKED = 10_000

logger = logging.getLogger("det_native")


@contextmanager
def files_reported(
    blobs: str, report: Callable[[list[WrittenFile], list[str]], None], batches: Callable[[], int]
) -> Iterator[None]:
    """Report what changes in the working directory while the block runs, whoever writes it.

    Parameters
    ----------
    blobs : str
        Address of the store for the contents.
    report : callable
        Is told the files that are new or have changed.
    batches : callable
        Returns how many batches are done.
    """
    root = Path.cwd()
    own = frozenset({os.path.relpath(os.path.realpath(Home.default().path), os.path.realpath(root))})
    before = _states(root, own)
    try:
        yield
    finally:
        try:
            files = _written(root, before, own, blobs, batches())
            for start in range(0, len(files), MOST_OF_REPORT):
                report(files[start : start + MOST_OF_REPORT], [])
        except (DetError, OSError, ValueError) as error:  # the training is over, and its files are where they are
            logger.warning("The files that the training has written are not listed: %s", error)


def _written(
    root: Path, before: dict[str, State] | None, own: frozenset[str], blobs: str, batch: int
) -> list[WrittenFile]:
    from det_harness.trial.open_files import OpenFiles
    from det_native.storage.written_files import FileCollection, limits_of

    now = None if before is None else _states(root, own)
    if before is None or now is None:
        note = f"The working directory has more than {MOST_WALKED} files: those of the training are not listed."
        return [WrittenFile(path=".", size=0, batch=batch, note=note)]
    OpenFiles().flush({(state[0], state[1]) for state in now.values()})
    folder = Folder(root, before, without=own)
    return FileCollection(BlobStore(blobs), lambda: [folder], limits_of(os.environ)).look(batch, last=True).files


def _states(root: Path, own: frozenset[str]) -> dict[str, State] | None:
    found = list(itertools.islice(walk(root, links=True, without=own), MOST_WALKED + 1))
    return None if len(found) > MOST_WALKED else dict(found)
