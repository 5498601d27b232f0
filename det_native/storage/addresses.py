"""Which folder an address is of: on this machine, or in an object store."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from det_native.errors import StorageError
from det_native.storage.folder import Folder, LocalFolder


def open_folder(uri: str, options: Mapping[str, Any] | None = None, *, prompt: bool = False) -> Folder:
    """Return the folder at a path, a ``file://`` address, or any address that fsspec knows, with `options` for that."""
    if not uri:
        raise StorageError("The address of a storage is empty; give a path or an address such as 's3://bucket/folder'.")
    scheme, separator, rest = uri.partition("://")
    if not separator:
        return LocalFolder(Path(uri).expanduser().absolute())
    if scheme in ("file", "local"):
        return LocalFolder(Path(rest).expanduser().absolute())
    from det_native.storage.remote_folder import RemoteFolder

    return RemoteFolder(uri, options, prompt=prompt)
