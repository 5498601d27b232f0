"""Secrets of a configuration: where they stand, and the configuration without them."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any

#: What stands for a secret where nobody can look it up.
HIDDEN = "********"
_STORAGE = ("access_key", "secret_key", "connection_string", "credential", "options")
_REGISTRY = ("password", "auth", "identitytoken", "registrytoken")
PATHS: tuple[tuple[str, ...], ...] = (
    *(("checkpoint_storage", name) for name in _STORAGE),
    *(("data_layer", name) for name in ("access_key", "secret_key")),
    *(("environment", "registry_auth", name) for name in _REGISTRY),
)


def replaced(config: Mapping[str, Any], change: Callable[[str, Any], Any]) -> dict[str, Any]:
    """Return a configuration in which ``change(path, value)`` is what stands for each secret that is given.

    Parameters
    ----------
    config : mapping
        In its normal form.
    """
    made = copy.deepcopy(dict(config))
    for *sections, name in PATHS:
        owner: Any = made
        for section in sections:
            owner = owner.get(section) if isinstance(owner, dict) else None
        if isinstance(owner, dict) and owner.get(name):
            owner[name] = change(".".join([*sections, name]), owner[name])
    return made


def hidden(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return a configuration without its secrets."""
    return replaced(config, lambda path, value: HIDDEN)
