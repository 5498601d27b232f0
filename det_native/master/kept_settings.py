"""What a home was set up with: every later start has it too, also one that a submit begins.

A master without its storage would find neither its bundles nor its data, one without its database no experiment, and
one without its SMTP server would tell nobody. All of it may have passwords in it: only the user reads these files.
"""

from __future__ import annotations

import json
import os
from typing import Any

from sqlalchemy import make_url

from det_native.errors import MasterStartError
from det_native.master.store.address import described
from det_native.schema.home import Home
from det_native.schema.private_files import write_private
from det_native.schema.start_settings import DATABASE, SMTP, database_url, kept_file, kept_setting

_STORAGE, _CHECKPOINTS = "storage", "checkpoints"


def settle(home: Home, url: str, options: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return the storage of a home and its options.

    Parameters
    ----------
    url : str
        What this start says; empty for what is kept.
    options : dict
        The same; empty for those that are kept with this address.

    Raises
    ------
    MasterStartError
        If another one is kept.
    """
    kept = _kept(home, _STORAGE)
    if url and kept["url"] not in ("", url):
        raise MasterStartError(
            f"The bundles and data of {home.path} lie at {kept['url']}: start with that, or copy all below it to {url} "
            f"and remove the file {kept_file(home, _STORAGE)}, which remembers it."
        )
    address = str(url or kept["url"])
    return (address, dict(options or kept["options"])) if address else ("", {})


def checkpoint_options(home: Home, url: str, options: dict[str, Any]) -> dict[str, Any]:
    """Return the options of a place of checkpoints: where none are given, those that are kept with it."""
    kept = _kept(home, _CHECKPOINTS)
    return options or (dict(kept["options"]) if kept["url"] == url else {})


def settle_variables(home: Home) -> str:
    """Put what a home keeps into the environment, where that is silent; return the address of its database.

    Raises
    ------
    MasterStartError
        If that is another database than the home's.
    ArgumentError
        If it is of no form that a master takes.
    """
    kept = kept_setting(home, DATABASE, {})
    url, own = (database_url(home, text) for text in (kept_setting(home, DATABASE), kept))
    if (kept or home.database.exists()) and _place(url) != _place(own):
        forget = (
            f"remove the file {kept_file(home, DATABASE)}, which remembers it" if kept else f"move {home.database} away"
        )
        raise MasterStartError(
            f"The experiments of {home.path} are in {described(own)}, and {DATABASE} names {described(url)}: start "
            f"without {DATABASE}, or, if the experiments are there now, {forget}."
        )
    smtp = kept_setting(home, SMTP)
    os.environ[SMTP] = "" if smtp == "none" else smtp
    return url


def keep(home: Home, database: str, **places: tuple[str, dict[str, Any]]) -> None:
    """Keep what a master was started with, once it has been seen to work: another one is refused from then on.

    Parameters
    ----------
    **places : tuple of str and dict
        Address and options of ``storage`` and ``checkpoints``.
    """
    for name, (url, options) in places.items():
        if url:
            _write(home, name, json.dumps({"url": url, "options": options}))
    _write(home, DATABASE, "" if _place(database) == _place(database_url(home, "")) else database)
    _write(home, SMTP, os.environ[SMTP])


def _place(url: str) -> tuple[object, ...]:
    """Return which database an address names, whoever asks for it and however."""
    parts = make_url(url)
    if parts.drivername == "sqlite":
        return (os.path.realpath(parts.database or ""),)
    host, port = (parts.query.get(name) for name in ("host", "port"))
    return (host or parts.host, int(str(port or parts.port or 5432)), parts.database)


def _write(home: Home, name: str, text: str) -> None:
    file = kept_file(home, name)
    if not text:
        file.unlink(missing_ok=True)
    elif kept_setting(home, name, {}) != text:
        file.parent.mkdir(mode=0o700, exist_ok=True)
        write_private(file, text)


def _kept(home: Home, name: str) -> dict[str, Any]:
    kept: dict[str, Any] = json.loads(kept_setting(home, name, {}) or '{"url": "", "options": {}}')
    return kept
