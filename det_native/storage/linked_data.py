"""Files of the store of data, where a program reads them: links, into a cache of this machine if it is far away."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from det_native.errors import StorageError
from det_native.schema.manifests import FileEntry
from det_native.storage.addresses import open_folder
from det_native.storage.cached_data import DataCache, lost_sentence
from det_native.storage.datasets import DataStore
from det_native.storage.paths import check_relative

_LINKING = 8
_LINKED_AT_ONCE = 256


def link_files(
    links: Sequence[FileEntry],
    store: str,
    into: Path,
    options: Mapping[str, Any] | None = None,
    cache: str = "",
) -> None:
    """Put links to files of the store where a program reads them.

    Parameters
    ----------
    store : str
        Its folder, or its address: then the files are brought to this machine first.
    into : Path
        Where the program reads.
    options : mapping, optional
        What fsspec's file system takes beside the address, secrets among it.
    cache : str
        Folder of this machine whose ``data/`` has what was brought; beside `into` if there is none.

    Raises
    ------
    StorageError
        If one is not in the store any more; it names the file.
    DiskFullError
        If this machine has no room for them.
    """
    if links and not open_folder(store, options).local:
        near = DataCache(store, options or {}, Path(cache) / "data" if cache else into.with_name("data"))
        near.bring(links)
        store = str(near.folder)
    # Of tens of thousands of files each call of the system counts: folders are listed, not asked for each file.
    data = DataStore(Path(store.removeprefix("file://")))
    stored: dict[str, set[str]] = {}
    places: list[tuple[str, str]] = []
    folders: set[str] = set()
    for entry in links:
        parts = check_relative(entry.path)
        folder, name = os.path.split(os.fspath(data.path_of(entry.sha256)))
        if folder not in stored:
            stored[folder] = set(os.listdir(folder)) if os.path.isdir(folder) else set()
        if name not in stored[folder]:
            raise StorageError(lost_sentence(entry.path))
        folders.add(os.path.join(into, *parts[:-1]))
        places.append((f"{folder}/{name}", os.path.join(into, *parts)))
    for folder in folders:
        os.makedirs(folder, exist_ok=True)

    def link(group: Sequence[tuple[str, str]]) -> None:
        for content, place in group:
            os.symlink(content, place)

    with ThreadPoolExecutor(_LINKING, thread_name_prefix="det-link") as threads:
        # `list` raises what one of them has raised.
        starts = range(0, len(places), _LINKED_AT_ONCE)
        list(threads.map(link, (places[start : start + _LINKED_AT_ONCE] for start in starts)))
