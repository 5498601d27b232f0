"""What differs between experiments: configurations by path, programs as diffs, packages. Pure functions."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from det_native.schema.manifests import BundleManifest

Key = int | str
#: By path or name, and by experiment: who has no such value is not in it.
Table = dict[str, dict[Key, Any]]

# Files whose text is part of a program that is a folder.
_CODE = (".py", ".yaml", ".yml", ".json", ".toml", ".cfg", ".ini", ".sh", ".txt", ".md")
_LARGEST_FILE = 1 << 20
CELL = "# %%"


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
    return {**config, "hyperparameters": hyperparameters}


def packages_of(bundle: BundleManifest | None) -> dict[str, str]:
    """Return the packages of the notebook in which a program was captured, by name, with the Python itself."""
    if bundle is None:
        return {}
    return {"python": bundle.interpreter.python, **bundle.interpreter.packages}


def code_of(bundle: BundleManifest, read_blob: Callable[[str], bytes]) -> dict[str, str]:
    """Return the text of a program by its parts: its cells together, or the files of a folder by path."""
    if bundle.program.kind == "cells":
        return {"cells": "\n\n".join(f"{CELL}\n{cell.source.rstrip()}" for cell in bundle.program.cells)}
    found = {"command": " ".join(bundle.program.command)}
    for file in bundle.files:
        if file.path.endswith(_CODE) and file.size <= _LARGEST_FILE:
            found[file.path] = read_blob(file.sha256).decode(errors="replace")
        else:
            found[file.path] = f"({file.size:,} bytes, {file.sha256[:12]})"
    return found


def diff_of(first: Mapping[str, str], second: Mapping[str, str], names: tuple[str, str]) -> str:
    """Return a unified diff of two programs; empty where they are the same."""
    texts: list[str] = []
    for part in dict.fromkeys([*first, *second]):
        one, other = first.get(part, ""), second.get(part, "")
        titles = [name if part == "cells" else f"{name}: {part}" for name in names]
        texts += difflib.unified_diff(one.splitlines(), other.splitlines(), titles[0], titles[1], lineterm="")
    return "\n".join(texts)
