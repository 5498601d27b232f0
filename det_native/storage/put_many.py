"""Many blobs at once into a store on this machine: for a client that shares the store's folder with its own master."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from det_native.storage.blobs import BlobStore, FileState

_GROUP = 4 << 20


def put_many(
    contents: Mapping[str, Path | bytes], states: Mapping[str, tuple[int, int, int, int]], store: BlobStore
) -> None:
    """Store blobs, by several threads. Files are not compressed: that would take longer than all the rest.

    Parameters
    ----------
    contents : mapping of SHA-256 to Path or bytes
        What to store.
    states : mapping of SHA-256 to (size, mtime_ns, ctime_ns, inode)
        States of files when their hashes were taken; files that are not in it, or changed, are hashed again.
    store : BlobStore
        Where to.

    Raises
    ------
    StorageError
        A file cannot be read or has another content now, or a blob cannot be stored. What was stored before stays.
    """

    def put_group(group: list[str]) -> None:
        for sha256 in group:
            content = contents[sha256]
            if isinstance(content, bytes):
                store.put(sha256, content, compressed=sha256 not in states)
            else:
                state = states.get(sha256)
                store.put_file(sha256, content, FileState(*state) if state else None)

    workers = min(os.cpu_count() or 1, 8)
    with ThreadPoolExecutor(workers, thread_name_prefix="det-put") as pool:
        futures = [pool.submit(put_group, group) for group in _groups(contents, states)]
        try:
            for future in futures:
                future.result()
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def _groups(
    contents: Mapping[str, Path | bytes], states: Mapping[str, tuple[int, int, int, int]]
) -> Iterator[list[str]]:
    group: list[str] = []
    size = 0
    for sha256, content in contents.items():
        group.append(sha256)
        state = states.get(sha256)
        size += len(content) if isinstance(content, bytes) else (state[0] if state else _GROUP // 8)
        if size >= _GROUP:
            yield group
            group, size = [], 0
    if group:
        yield group
