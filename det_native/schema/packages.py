"""The packages of an interpreter: which distributions bring a module, in which version, told without importing any."""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import platform
import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from pydantic import BaseModel, ConfigDict

_ENDS = (".dist-info", ".egg-info")
_PYTHON_TAG = re.compile(r"-py\d+(\.\d+)?$")
_MODULE = re.compile(r"[A-Za-z_]\w*")


class Installed(BaseModel):
    """What an interpreter has.

    Attributes
    ----------
    python : str
        Its version.
    paths : list of str
        The folders that it imports from.
    modules : dict
        Top-level module to the distributions that bring it, by normal name, with their versions.
    """

    model_config = ConfigDict(frozen=True)

    python: str
    paths: list[str]
    modules: dict[str, dict[str, str]]


def normal_name(name: str) -> str:
    """Return the one form of the several ways to write a distribution's name."""
    return re.sub(r"[-_.]+", "-", name).lower()


def read_installed() -> Installed:
    """Return what this interpreter has, from the metadata folders as installers write them."""
    folders = [path or os.getcwd() for path in sys.path]
    modules: dict[str, dict[str, str]] = {}
    seen: set[str] = set()
    for folder in folders:
        for name, version, metadata in distributions_in(folder):
            if name not in seen:  # one in an earlier folder hides those after it
                seen.add(name)
                for module in _modules_of(metadata):
                    modules.setdefault(module, {})[name] = version
    return Installed(python=platform.python_version(), paths=folders, modules=modules)


def distributions_in(folder: str) -> Iterator[tuple[str, str, str]]:
    """Yield normal name, version and metadata folder of each distribution in a folder, by name."""
    try:
        entries = [entry for entry in os.scandir(folder) if entry.name.endswith(_ENDS)]
    except OSError:  # a zip file, or a folder that is not there
        return
    for entry in sorted(entries, key=lambda one: one.name):
        stem, _, end = entry.name.rpartition(".")
        package, separator, version = (_PYTHON_TAG.sub("", stem) if end == "egg-info" else stem).partition("-")
        if separator and not package.startswith("~"):  # pip's mark for a package that it was removing
            yield normal_name(package), version, entry.path


def _modules_of(metadata: str) -> set[str]:
    with suppress(OSError):
        return set((Path(metadata) / "top_level.txt").read_text("utf-8").split())
    found: set[str] = set()
    with suppress(OSError), (Path(metadata) / "RECORD").open(encoding="utf-8") as record:
        for line in record:
            first, _, rest = line.partition(",")[0].partition("/")
            name = first if rest else first.partition(".")[0] if first.endswith((".py", ".so")) else ""
            if _MODULE.fullmatch(name) and name != "__pycache__":
                found.add(name)
    return found


def stamp(paths: Iterable[str]) -> tuple[tuple[str, int], ...]:
    """Return what changes when something is installed, upgraded or removed in these folders."""
    return tuple((path, _changed(path)) for path in paths)


def _changed(path: str) -> int:
    try:
        return os.stat(path).st_mtime_ns
    except OSError:
        return 0


def is_importable(module: str) -> bool:
    """Whether this interpreter finds a top-level module; it is not imported."""
    importlib.invalidate_caches()
    try:
        return module in sys.modules or importlib.util.find_spec(module) is not None
    except (ImportError, ValueError):
        return False


def modules_here(installed: Installed, names: Iterable[str]) -> dict[str, dict[str, str]]:
    """Return those of `names` that can be imported here, with the distributions that bring them as far as is known."""
    found = {name: installed.modules.get(name) for name in names}
    return {name: known or {} for name, known in found.items() if known is not None or is_importable(name)}


if __name__ == "__main__":
    here = read_installed()
    answer = here.model_dump() | {"modules": modules_here(here, sys.argv[1:])}
    print(json.dumps(answer))
