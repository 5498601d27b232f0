"""What a master is started with besides its arguments: variables, and what its home keeps of them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from det_native.errors import ArgumentError
from det_native.schema.home import Home

DATABASE, SMTP, BUDGET = "DET_DATABASE", "DET_SMTP_URL", "DET_DISK_BUDGET"
#: Settings of a master that it finds in its environment.
PLAIN = frozenset(
    {
        *("DET_SLOTS", "DET_SCHEDULER", "DET_TRIALS_WITHOUT_SLOTS", BUDGET),
        *("DET_LAUNCHER", "DET_RAY_ADDRESS", "DET_STORAGE", "DET_CHECKPOINTS"),
    }
)
#: Those that may have keys or passwords in them: they stand in no file that others read, as a crontab would be.
SECRET = frozenset({"DET_STORAGE_OPTIONS", "DET_CHECKPOINTS_OPTIONS", DATABASE, SMTP})
_FORM = f"{DATABASE} must be of the form postgresql://user:password@host:5432/name, or sqlite:////path/of/file"


def kept_file(home: Home, name: str) -> Path:
    """Return the file in which a home keeps a variable that masters are started with; only its user reads it."""
    return home.path / "secrets" / name.removeprefix("DET_").lower()


def kept_setting(home: Home, name: str, environment: Mapping[str, str] = os.environ) -> str:
    """Return a variable as it is set, else as the home keeps it; empty where neither is."""
    try:
        return environment.get(name) or kept_file(home, name).read_text("utf-8")
    except FileNotFoundError:
        return ""


def database_url(home: Home, environment: Mapping[str, str] = os.environ) -> str:
    """Return the address of the database of a home, as SQLAlchemy reads it.

    Raises
    ------
    ArgumentError
        If it is of no form that a master takes; the sentence does not repeat it, since it may hold a password.
    """
    return as_database_url(kept_setting(home, DATABASE, environment), home)


def as_database_url(text: str, home: Home) -> str:
    """Return an address as SQLAlchemy reads it, that of the home's own file for none; see :func:`database_url`."""
    if not text:
        return f"sqlite:///{home.database}"
    scheme, separator, rest = text.partition("://")
    if separator and scheme == "sqlite":
        path = rest.removeprefix("/")
        return f"sqlite:///{home.path / path}" if path else text
    if not separator or scheme not in ("postgres", "postgresql", "postgresql+psycopg"):
        raise ArgumentError(f"{_FORM}.")
    url = f"postgresql+psycopg://{rest}"
    try:
        _ = urlsplit(url).port
    except ValueError:
        raise ArgumentError(f"{_FORM}.") from None
    return url


def same_database(one: str, other: str) -> bool:
    """Return whether two addresses name the same database; users, passwords and options may differ."""
    return _place(one) == _place(other)


def _place(url: str) -> tuple[object, ...]:
    if url.startswith("sqlite:"):
        return (os.path.realpath(url.removeprefix("sqlite:///")),)
    parts = urlsplit(url)
    query = parse_qs(parts.query)
    host, port = (query.get(name, [""])[0] for name in ("host", "port"))
    return (host or parts.hostname or "", int(port or parts.port or 5432), parts.path.strip("/"))
