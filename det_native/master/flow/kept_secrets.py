"""Secrets of configurations, kept apart from the database: what is stored and shown has a name in their place.

Each lies in a file of the master's home that only its user can read. A configuration with a name in it, such as one
that was shown by a master and is submitted again, gets the secret back, if the same user gave it.
"""

from __future__ import annotations

import json
import os
import re
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from det_native.errors import ArgumentError
from det_native.schema.hidden import HIDDEN, replaced

_FOLDER = "secrets"
_NAME = re.compile(r"<secret ([0-9a-f]{16})>")


def keep(home: Path, owner: str, config: Mapping[str, Any]) -> dict[str, Any]:
    """Return a configuration with names for its secrets, and keep these.

    Raises
    ------
    ArgumentError
        If one of them is a name that this master does not know.
    """
    folder = home / _FOLDER

    def name(path: str, value: Any) -> str:
        if isinstance(value, str) and _NAME.fullmatch(value):
            _read(folder, owner, path, value)
            return value
        if value == HIDDEN:
            raise ArgumentError(f"{path}: the secret was left out of what was shown; give it again.")
        folder.mkdir(mode=0o700, exist_ok=True)
        for file in folder.iterdir():
            if file.suffix == ".json" and json.loads(file.read_bytes()) == {"owner": owner, "value": value}:
                return f"<secret {file.stem}>"
        made = secrets.token_hex(8)
        descriptor = os.open(folder / f".{made}", os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "w") as stream:
            json.dump({"owner": owner, "value": value}, stream)
        (folder / f".{made}").rename(folder / f"{made}.json")
        return f"<secret {made}>"

    return replaced(config, name)


def give(home: Path, owner: str, config: Mapping[str, Any]) -> dict[str, Any]:
    """Return a configuration with its secrets in place of their names.

    Raises
    ------
    ArgumentError
        If this master does not know one.
    """
    folder = home / _FOLDER

    def value_of(path: str, value: Any) -> Any:
        named = isinstance(value, str) and _NAME.fullmatch(value)
        return _read(folder, owner, path, value) if named else value

    return replaced(config, value_of)


def _read(folder: Path, owner: str, path: str, name: str) -> Any:
    match = _NAME.fullmatch(name)
    assert match is not None
    try:
        kept = json.loads((folder / f"{match[1]}.json").read_bytes())
    except (FileNotFoundError, ValueError):
        kept = {}
    if kept.get("owner") != owner:
        raise ArgumentError(f"{path}: this master does not have the secret that {name!r} stands for; give it again.")
    return kept["value"]
