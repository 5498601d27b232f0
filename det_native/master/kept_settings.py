"""What a home was set up with: every later start has it too, also one that a submit begins.

A master without its storage would find neither its bundles nor its data, one without its database no experiment, and
one without its SMTP server would tell nobody. All of it may have passwords in it: only the user reads these files.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from det_native.errors import MasterStartError
from det_native.master.store.address import described
from det_native.schema.home import Home
from det_native.schema.private_files import write_private
from det_native.schema.start_settings import (
    DATABASE,
    SMTP,
    as_database_url,
    database_url,
    kept_file,
    kept_setting,
    same_database,
)

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


def settle_variables(home: Home) -> str:
    """Put what a home keeps into the environment, where that is silent; return the address of its database.

    Raises
    ------
    MasterStartError
        If that is another database than the home's.
    ArgumentError
        If it is of no form that a master takes.
    """
    url = database_url(home)
    kept = kept_setting(home, DATABASE, {})
    if kept or home.database.exists():
        own = as_database_url(kept, home)
        if not same_database(url, own):
            forget = f"remove the file {kept_file(home, DATABASE)}, which remembers it" if kept else "move it away"
            raise MasterStartError(
                f"The experiments of {home.path} are in {described(own)}, and {DATABASE} names {described(url)}: "
                f"start without {DATABASE}, or, if the experiments are there now, {forget}."
            )
    smtp = kept_setting(home, SMTP)
    os.environ[SMTP] = "" if smtp == "none" else smtp
    return url


def keep_variables(home: Home, url: str) -> None:
    """Keep what this master was started with, once it has been seen to work."""
    own = same_database(url, as_database_url("", home))
    for name, value in ((DATABASE, "" if own else url), (SMTP, os.environ[SMTP])):
        file = kept_file(home, name)
        if not value:
            file.unlink(missing_ok=True)
        elif kept_setting(home, name, {}) != value:
            file.parent.mkdir(mode=0o700, exist_ok=True)
            write_private(file, value)


def _kept(home: Home) -> dict[str, Any]:
    try:
        kept: dict[str, Any] = json.loads(_file(home).read_bytes())
    except FileNotFoundError:
        return {"url": "", "options": {}}
    return kept


def _file(home: Home) -> Path:
    return home.path / _FOLDER / _NAME
