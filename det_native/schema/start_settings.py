"""What a master is started with besides its arguments: variables, and what its home keeps of them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

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
_POSTGRES = ("postgres", "postgresql", "postgresql+psycopg")


def kept_file(home: Home, name: str) -> Path:
    """Return the file in which a home keeps what masters are started with; only its user reads it."""
    return home.path / "secrets" / name.removeprefix("DET_").lower()


def kept_setting(home: Home, name: str, environment: Mapping[str, str] = os.environ) -> str:
    """Return a variable as it is set, else as the home keeps it; empty where neither is."""
    try:
        return environment.get(name) or kept_file(home, name).read_text("utf-8")
    except FileNotFoundError:
        return ""


def database_url(home: Home, text: str) -> str:
    """Return the address of a database as SQLAlchemy reads it; that of the home's own file for an empty text.

    Raises
    ------
    ArgumentError
        If it is of no form that a master takes; the sentence does not repeat it, since it may hold a password.
    """
    scheme, _, rest = (text or f"sqlite:///{home.database}").partition("://")
    try:
        if scheme == "sqlite" and len(rest) > 1:
            return f"sqlite:///{home.path / rest[1:]}"
        if scheme in _POSTGRES and urlsplit(f"//{rest}").port != 0:
            return f"{_POSTGRES[-1]}://{rest}"
    except ValueError:  # a port that is no number
        pass
    raise ArgumentError(
        f"{DATABASE} must be of the form postgresql://user:password@host:5432/name, or sqlite:////path/of/file."
    )
