"""What a client reads in the folder of a master on this machine."""

from __future__ import annotations

from det_native.errors import AuthenticationError
from det_native.schema.home import Home, read_runtime
from det_native.schema.sockets import is_socket


def read_token(home: Home) -> str | None:
    """Return the bearer token of the master of this home, or None if none was ever started there.

    Raises
    ------
    AuthenticationError
        If the file belongs to somebody else.
    """
    try:
        return home.token.read_text(encoding="ascii").strip() or None
    except FileNotFoundError:
        return None
    except PermissionError as error:
        raise AuthenticationError(f"The token {home.token} cannot be read: it belongs to another user.") from error


def find_master(home: Home) -> tuple[str, str] | None:
    """Return the address and token of the master that runs in a home now, None if none does, or an older one."""
    runtime = read_runtime(home)
    token = read_token(home)
    return None if runtime is None or token is None or not is_socket(runtime.url) else (runtime.url, token)
