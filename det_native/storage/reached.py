"""Whether this machine reaches a storage of the master's: a folder is known by its mark, and what is not is tried."""

from __future__ import annotations

import os
import platform
import secrets
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from det_native.errors import MissingDependencyError, StorageError
from det_native.storage.addresses import open_folder
from det_native.storage.folder import INCOMING, Folder

#: The file in a folder by which other machines know that it is the same there.
MARK = ".det-shared"
_MOST_BYTES = 100
_FOLDERS = frozenset({"", "file", "local"})


def mark_of(address: str) -> str:
    """Return the mark of a folder, which is put there if it has none.

    Empty where the address is not a folder, or the folder cannot be written to: whether other machines see the same
    folder cannot be checked then.
    """
    if not _is_folder(address):
        return ""
    root = Path(open_folder(address).uri)
    try:
        return _mark_in(root) or _put_mark(root)
    except OSError:
        return ""


def check_reached(address: str, options: Mapping[str, Any], mark: str) -> None:
    """See that what this machine writes to a storage comes where the master looks for it.

    What may be over soon, such as a storage that does not answer, is passed over: who writes there waits for it.

    Parameters
    ----------
    options : mapping
        What fsspec takes beside it.
    mark : str
        What :func:`mark_of` has told the master.

    Raises
    ------
    StorageError
        If it certainly does not; the sentence names the machine.
    """
    host = platform.node()
    try:
        folder = open_folder(address, options, prompt=True)
    except MissingDependencyError as error:
        raise StorageError(f"The machine {host} cannot write to {address}. {error}") from error
    if folder.local and not _has_mark(Path(folder.uri), mark):
        raise StorageError(
            f"The machine {host} does not see the master's folder {folder.uri}: have all machines share it under this "
            "path, or take a storage that all reach (s3://bucket/folder)."
        )
    if folder.local and not mark:
        return
    try:
        _try(folder)
    except OSError as error:
        if _is_lasting(error):
            raise StorageError(
                f"The machine {host} cannot write to {folder.uri}: {_said(error)}. Give it access, or keys "
                "(DET_STORAGE_OPTIONS, or options of checkpoint_storage) that count on every machine."
            ) from error


def _is_folder(address: str) -> bool:
    scheme, separator, _ = address.partition("://")
    return not separator or scheme in _FOLDERS


def _has_mark(root: Path, mark: str) -> bool:
    try:
        return not mark or _mark_in(root) == mark
    except OSError:  # nobody knows; whoever writes there hears what is wrong
        return True


def _mark_in(root: Path) -> str:
    try:
        with (root / MARK).open("rb") as stream:
            return stream.read(_MOST_BYTES).decode("ascii", "replace")
    except (FileNotFoundError, NotADirectoryError):
        return ""


def _put_mark(root: Path) -> str:
    root.mkdir(parents=True, exist_ok=True, mode=0o700)
    mark = secrets.token_hex(16)
    temporary = root / f"{MARK}.{secrets.token_hex(4)}"
    temporary.write_text(mark, encoding="ascii")
    try:
        os.link(temporary, root / MARK)
        return mark
    except FileExistsError:  # another master was faster
        return _mark_in(root)
    finally:
        temporary.unlink()


def _try(folder: Folder) -> None:
    key = f"{INCOMING}/{secrets.token_hex(8)}"
    folder.publish(key, [b"this machine can write here"])
    with suppress(OSError):  # it need not be allowed to
        folder.delete(key)


def _is_lasting(error: OSError) -> bool:
    """Return whether waiting does not help: access is refused, or the bucket or the keys are missing.

    fsspec has no common error for missing keys. Those of S3 and of Google have "Credentials" in their names; where
    another package says it in another way, the trial waits at its first checkpoint, and says why.
    """
    names = {type(each).__name__ for each in (error, error.__cause__)}
    return isinstance(error, PermissionError | FileNotFoundError) or any("Credentials" in name for name in names)


def _said(error: OSError) -> str:
    of_a_file = error.filename is not None and error.strerror  # the path would be there twice
    return str(error.strerror if of_a_file else error).strip().rstrip(".") or type(error).__name__
