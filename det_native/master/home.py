"""The master's own use of its folder: made private, locked, and given a token."""

from __future__ import annotations

import logging
import os
import re
import secrets
import stat

from filelock import FileLock, Timeout

from det_native.errors import MasterStartError
from det_native.schema.home import Home
from det_native.schema.private_files import write_private

logger = logging.getLogger(__name__)

_TOKEN_BYTES = 32
_TOKEN = re.compile(r"[A-Za-z0-9_-]{43,}")
_FOLDER_MODE = 0o700
_FILE_MODE = 0o600


def prepare(home: Home) -> None:
    """Make the folder, open to its owner only.

    Raises
    ------
    MasterStartError
        If it belongs to somebody else.
    """
    home.path.mkdir(parents=True, exist_ok=True, mode=_FOLDER_MODE)
    found = home.path.stat()
    if found.st_uid != os.geteuid():
        raise MasterStartError(f"{home.path} belongs to another user. Set DET_HOME to a folder of yours.")
    if stat.S_IMODE(found.st_mode) != _FOLDER_MODE:
        home.path.chmod(_FOLDER_MODE)


def lock(home: Home) -> FileLock:
    """Take the lock that a master holds as long as it lives.

    Raises
    ------
    MasterStartError
        If another master holds it.
    """
    held = FileLock(home.master_lock, mode=_FILE_MODE)
    try:
        held.acquire(blocking=False)
    except Timeout as error:
        raise MasterStartError(f"A master runs in {home.path} already; `det status` shows it.") from error
    return held


def token(home: Home) -> str:
    """Return the bearer token of the master's user, made now if there is none that can be trusted."""
    try:
        mode = stat.S_IMODE(home.token.stat().st_mode)
        text = home.token.read_text(encoding="ascii", errors="replace").strip()
    except FileNotFoundError:
        return _new_token(home)
    if mode & 0o077:
        logger.warning("the token file could be read by other users (mode %o): it is replaced by a new one", mode)
        return _new_token(home)
    return text if _TOKEN.fullmatch(text) else _new_token(home)


def renew_exposed_token(home: Home) -> None:
    """Replace a token that earlier versions have sent in the clear to the port of their masters, whoever had it."""
    if home.exposing_port.exists():
        logger.warning("the token is replaced by a new one: earlier versions said it to whatever had the master's port")
        _new_token(home)
        home.exposing_port.unlink()


def _new_token(home: Home) -> str:
    made = secrets.token_urlsafe(_TOKEN_BYTES)
    write_private(home.token, made + "\n")
    return made
