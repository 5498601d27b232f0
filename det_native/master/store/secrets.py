"""Secrets of configurations and settings: kept beside them, so that what is shown, sent to workers or copied has none.

A secret is replaced by a reference, which is made of its content: a configuration that is copied still names it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from sqlalchemy import Connection

from det_native.master.store import settings
from det_native.master.store.database import Transaction
from det_native.schema.notify import REFERENCE

_FIELDS = ("webhook", "secret")


def hide(transaction: Transaction, owner: str, entries: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return entries of ``notify`` with references in place of their secrets, which are kept."""
    hidden = []
    for entry in entries:
        shown = dict(entry)
        for name in _FIELDS:
            value = shown.get(name)
            if value and not REFERENCE.fullmatch(value):
                key = hashlib.sha256(f"{name} {value}".encode()).hexdigest()[:16]
                settings.put(transaction, owner, f"secret:{key}", value)
                host = f"@{urlsplit(value).hostname}" if name == "webhook" else ""
                shown[name] = f"secret:{key}{host}"
        hidden.append(shown)
    return hidden


def reveal(connection: Connection, owner: str, entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return an entry with its secrets; None in place of one that is not known here."""
    shown = dict(entry)
    for name in _FIELDS:
        value = shown.get(name)
        if value and REFERENCE.fullmatch(value):
            shown[name] = settings.get(connection, owner, value.partition("@")[0])
    return shown
