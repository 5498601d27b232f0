"""The storage that a home was set up with: every later start has it too, also one that a submit begins.

A master without it would find neither its bundles nor its data.
"""

from __future__ import annotations

import json
from typing import Any

from det_native.errors import MasterStartError
from det_native.schema.home import Home
from det_native.schema.private_files import write_private

_FOLDER, _NAME = "secrets", "storage"


def keep(home: Home, url: str, options: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return the storage of a home and its options, and keep them.

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
    file = home.path / _FOLDER / _NAME
    kept: dict[str, Any]
    try:
        kept = json.loads(file.read_bytes())
    except FileNotFoundError:
        kept = {"url": "", "options": {}}
    if url and kept["url"] not in ("", url):
        raise MasterStartError(
            f"The bundles and data of {home.path} lie at {kept['url']}: start with that, or copy all below it to {url} "
            f"and remove the file {file}, which remembers it."
        )
    address, given = str(url or kept["url"]), dict(options or kept["options"])
    if not address:
        return "", {}
    if kept != {"url": address, "options": given}:
        file.parent.mkdir(mode=0o700, exist_ok=True)
        write_private(file, json.dumps({"url": address, "options": given}))
    return address, given
