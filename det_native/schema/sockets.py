"""Unix sockets by which a master is reached on its own machine: their addresses, their place, and who is behind one."""

from __future__ import annotations

import hashlib
import os
import re
import socket
import stat
import struct
import sys
import tempfile
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

SCHEME = "unix:"
# The shortest ``sun_path`` of the systems that we know has 104 letters (macOS; 108 on Linux).
LONGEST_PATH = 100
# Of what a socket's path is made, so that ``ssh`` and a shell take it as it is.
_PLAIN = re.compile(r"/[A-Za-z0-9_./@+=,-]*")
_PAUSE_SECONDS = 0.01
# ``struct xucred`` of the BSDs and macOS begins with its version and the user.
_XUCRED = "2I"


class NotOursError(ConnectionError):
    """What listens at a socket, or at a port, is no process of this user's; it was told nothing."""


def is_socket(url: str) -> bool:
    """Return whether an address is that of a Unix socket."""
    return url.startswith(SCHEME)


def url_of(path: Path) -> str:
    """Return the address of a socket."""
    return f"{SCHEME}{path}"


def path_of(url: str) -> Path:
    """Return the path of an address for which :func:`is_socket` holds."""
    return Path(url.removeprefix(SCHEME))


def fits(path: Path) -> bool:
    """Return whether a socket can have this path."""
    return len(os.fsencode(path)) <= LONGEST_PATH and _PLAIN.fullmatch(str(path)) is not None


def short_path(key: str, bases: Iterable[str | None] = (), room: int = 0) -> Path:
    """Return a path for a socket, in a folder with a short name that only this user can open.

    Parameters
    ----------
    key : str
        Tells it from other sockets of this user.
    bases : iterable of str or None
        Folders to look in, besides those of temporary files.
    room : int
        Letters that something will be added to the path.

    Raises
    ------
    OSError
        If there is no such folder.
    """
    name, file = f"det-native-{os.getuid()}", hashlib.sha256(key.encode()).hexdigest()[:16]
    folders = [Path(base, name) for base in (*bases, tempfile.gettempdir(), "/tmp") if base]
    for folder in folders:
        if not fits(folder / (file + "x" * room)):
            continue
        with suppress(OSError):
            folder.mkdir(mode=0o700, exist_ok=True)
            found = folder.lstat()
            if stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not stat.S_IMODE(found.st_mode) & 0o077:
                return folder / file
    raise OSError(f"there is no folder for sockets that only you can open: make {folders[0]} one")


def peer_uid(connected: socket.socket) -> int | None:
    """Return which user is at the other end of a Unix socket, None where the system does not tell."""
    if hasattr(socket, "SO_PEERCRED"):
        size = struct.calcsize("3i")
        return int(struct.unpack("3i", connected.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size))[1])
    if sys.platform != "win32" and hasattr(socket, "LOCAL_PEERCRED"):
        size = struct.calcsize(_XUCRED)
        return int(struct.unpack(_XUCRED, connected.getsockopt(0, socket.LOCAL_PEERCRED, 128)[:size])[1])
    return None


def check_peer(connected: socket.socket, name: str) -> None:
    """Refuse whoever is at the other end of a Unix socket and is another user.

    Raises
    ------
    NotOursError
    """
    user = peer_uid(connected)
    if user is not None and user != os.geteuid():
        raise NotOursError(f"the process that listens at {name} is of user {user}, not of yours ({os.geteuid()})")


def dial(path: Path, seconds: float | None) -> socket.socket:
    """Connect to a Unix socket of this user's.

    Raises
    ------
    NotOursError
        If another user listens there.
    OSError
        If nobody does, or not in time.
    """
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        made.settimeout(seconds)
        deadline = None if seconds is None else time.monotonic() + seconds
        while True:
            try:
                made.connect(str(path))
                break
            except BlockingIOError:  # too many wait to be let in
                if deadline is not None and time.monotonic() > deadline:
                    raise TimeoutError(f"{path} lets nobody in") from None
                time.sleep(_PAUSE_SECONDS)
        check_peer(made, str(path))
    except BaseException:
        made.close()
        raise
    return made
