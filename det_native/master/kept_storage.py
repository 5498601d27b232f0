"""The storage that a home was set up with: every later start has it too, also one that a submit begins.

A master without it would find neither its bundles nor its data.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from det_native.errors import MasterStartError
from det_native.schema.home import Home
from det_native.schema.private_files import write_private

_FOLDER, _NAME = "secrets", "storage"


def settle(home: Home, url: str, options: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return the storage of a home and its options.

    Parameters
    ----------
    home : Home
    url : str
        What this start says; empty for what is kept.
    options : dict
        The same; empty for those that are kept with this address.

    Raises
    ------
    MasterStartError
        If another one is kept.
    """
    kept = _kept(home)
    if url and kept["url"] not in ("", url):
        raise MasterStartError(
            f"The bundles and data of {home.path} lie at {kept['url']}: start with that, or copy all below it to {url} "
            f"and remove the file {_file(home)}, which remembers it."
        )
    address = str(url or kept["url"])
    return (address, dict(options or kept["options"])) if address else ("", {})


def keep(home: Home, url: str, options: dict[str, Any]) -> None:
    """Keep the storage of a home: once it has been seen to work, since another one is refused from then on."""
    if url and _kept(home) != {"url": url, "options": options}:
        _file(home).parent.mkdir(mode=0o700, exist_ok=True)
        write_private(_file(home), json.dumps({"url": url, "options": options}))


def _kept(home: Home) -> dict[str, Any]:
    try:
        kept: dict[str, Any] = json.loads(_file(home).read_bytes())
    except FileNotFoundError:
        return {"url": "", "options": {}}
    return kept


def _file(home: Home) -> Path:
    return home.path / _FOLDER / _NAME
