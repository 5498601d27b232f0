"""What differs between experiments: configurations by path, packages. Pure functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from det_native.schema.manifests import BundleManifest

Key = int
#: By path or name, and by experiment: who has no such value is not in it.
Table = dict[str, dict[Key, Any]]


def flat(values: Mapping[str, Any], before: str = "") -> dict[str, Any]:
    """Return nested mappings as one, by paths such as ``searcher.max_length.batches``."""
    found: dict[str, Any] = {}
    for name, value in values.items():
        path = f"{before}{name}"
        if isinstance(value, Mapping) and value:
            found |= flat(value, f"{path}.")
        else:
            found[path] = value
    return found


def table_of(values: Mapping[Key, Mapping[str, Any]]) -> Table:
    """Return values by name and experiment, in order of the names."""
    names = sorted({name for each in values.values() for name in each})
    return {name: {key: each[name] for key, each in values.items() if name in each} for name in names}


def differing(table: Table, keys: Sequence[Key]) -> Table:
    """Return the rows of a table in which not all experiments have the same value."""
    return {
        name: row
        for name, row in table.items()
        if len(row) < len(keys) or any(row[key] != row[keys[0]] for key in keys)
    }


def searched_config(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return a configuration without the hyperparameters that have one value: those are compared as they are."""
    hyperparameters = {
        name: value
        for name, value in (config.get("hyperparameters") or {}).items()
        if isinstance(value, Mapping) and value.get("type") not in (None, "const")
    }
    others = {name: value for name, value in config.items() if name != "hyperparameters"}
    return {**others, "hyperparameters": hyperparameters} if hyperparameters else others


def packages_of(bundle: BundleManifest | None) -> dict[str, str]:
    """Return the packages of the notebook in which a program was captured, by name, with the Python itself."""
    if bundle is None:
        return {}
    return {"python": bundle.interpreter.python, **bundle.interpreter.packages}
