"""Folders of the working directory that have to be there, and those that the program makes itself."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from det_native.schema.manifests import FolderEntry
from det_native.storage.paths import check_relative


@contextmanager
def made_folders(folders: Iterable[FolderEntry], directory: Path) -> Iterator[None]:
    """Make the folders that have to be there; in the block, making one is no error that only files which travel are in.

    ``os.makedirs("data")`` of a cell found nothing there in the notebook. Files that another cell has put there, which
    does not run again, travel, and the folder is there before its cell makes it.
    """
    awaited: set[str] = set()
    for folder in folders:
        check_relative(folder.path)
        path = directory / folder.path
        if folder.made:
            awaited.add(os.path.realpath(path))
        else:
            path.mkdir(parents=True, exist_ok=True)
    if not awaited:
        yield
        return
    mkdir = os.mkdir

    def make(path: Any, *args: Any, **options: Any) -> None:
        try:
            mkdir(path, *args, **options)
        except FileExistsError:
            real = os.path.realpath(path) if options.get("dir_fd") is None else ""
            if real not in awaited:
                raise
            awaited.discard(real)

    os.mkdir = make
    try:
        yield
    finally:
        os.mkdir = mkdir
