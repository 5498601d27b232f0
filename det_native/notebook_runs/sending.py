"""Sends the folder of a notebook to another machine by SSH, for a run there."""

from __future__ import annotations

import hashlib
import shlex
import tarfile
import tempfile
from pathlib import Path
from typing import NamedTuple

from det_native.capture.files import check_size, scan_tree
from det_native.capture.secret_files import without_secret_files
from det_native.client.remote.asking import home_there
from det_native.client.remote.ssh import Line
from det_native.errors import ArgumentError, RemoteSetupError

#: Raw bytes of a folder that is sent.
FOLDER_LIMIT = 2 << 30
_SECONDS = 3_600.0
# In the home of the master there.
_PLACE = "notebook-folders"
#: Names of the files that were sent, each ended by a null byte: those that are gone here are removed there.
_LIST = ".det-sent"
_MOST_NOTES = 10


class Sent(NamedTuple):
    """A folder that was sent: the absolute path of the notebook there, and what was left out."""

    notebook: str
    notes: list[str]


def send_folder(line: Line, notebook: Path) -> Sent:
    """Send the folder of a notebook, but for what never travels: environments, caches, keys, ``.detignore``.

    A folder that was sent before is brought up to date; files that runs have made there stay.

    Raises
    ------
    ArgumentError
        If the notebook is not in its folder's files, or the folder cannot be read.
    CaptureError
        If the folder is too large.
    RemoteSetupError
        If it cannot be unpacked there.
    """
    folder = notebook.absolute().parent
    scan, _, rows = without_secret_files(scan_tree(folder), [])
    assert scan is not None
    keys = set(scan.keys)
    files = {file.target: file.path for file in scan.files if file.target not in keys}
    files.setdefault(notebook.name, notebook)
    check_size(((file.target, file.stat.size) for file in scan.files), FOLDER_LIMIT, folder)
    left_out = [f"{row.what}: {row.note}" for row in (*scan.rows, *rows)]
    left_out += [f"{target}: it looks like a key, and does not travel." for target in sorted(keys)]
    name = f"{folder.name or 'folder'}-{hashlib.sha256(str(folder).encode()).hexdigest()[:12]}"
    with tempfile.TemporaryDirectory(prefix="det-notebook-") as temporary:
        archive = Path(temporary) / "folder.tar"
        try:
            _pack(files, archive, Path(temporary) / "list")
        except OSError as error:
            raise ArgumentError(f"The folder {folder} cannot be read: {error.filename}: {error.strerror}.") from error
        place = shlex.quote(f"{home_there(line)}/{_PLACE}/{name}")
        command = (
            f"mkdir -p {place} && cd {place} && if [ -f {_LIST} ]; then xargs -0 rm -f -- < {_LIST}; fi && "
            "tar -xf - && pwd"
        )
        done = line.run_command(command, archive, seconds=_SECONDS)
    if done.code:
        why = (done.complained.strip() or f"exit code {done.code}").splitlines()[-1]
        raise RemoteSetupError(f"The folder of the notebook cannot be written on {line.target.machine}: {why}")
    return Sent(f"{done.printed.strip().splitlines()[-1]}/{notebook.name}", left_out[:_MOST_NOTES])


def _pack(files: dict[str, Path], archive: Path, names: Path) -> None:
    names.write_bytes(b"".join(target.encode() + b"\0" for target in files))
    with tarfile.open(archive, "w") as tar:
        tar.add(names, _LIST)
        for target, path in files.items():
            tar.add(path.resolve(), target, recursive=False)
