"""The toy framework, installed without a network: a folder of packages with its metadata, for the import path."""

from __future__ import annotations

import importlib
import shutil
import sys
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from det_harness.frameworks import base

from det_native.frameworks import registry

SOURCE = Path(__file__).parent / "frameworks" / "toy"


def install_toy(folder: Path) -> Path:
    """Install it below `folder`; return what belongs on the import path."""
    project = tomllib.loads((SOURCE / "pyproject.toml").read_text())["project"]
    packages = folder / "site-packages"
    shutil.copytree(SOURCE / "toy_framework", packages / "toy_framework", ignore=shutil.ignore_patterns("__pycache__"))
    metadata = packages / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    metadata.mkdir()
    head = f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
    (metadata / "METADATA").write_text(head)
    sections = [
        f"[{group}]\n" + "\n".join(f"{name} = {value}" for name, value in entries.items())
        for group, entries in project["entry-points"].items()
    ]
    (metadata / "entry_points.txt").write_text("\n".join(sections) + "\n")
    return packages


@contextmanager
def toy_in_this_process(folder: Path) -> Iterator[None]:
    """Have it installed in this process for the block."""
    packages = str(install_toy(folder))
    descriptions, scanned = dict(registry._descriptions), registry._scanned
    registry._scanned = False
    sys.path.insert(0, packages)
    importlib.invalidate_caches()
    try:
        yield
    finally:
        sys.path.remove(packages)
        for name in [name for name in sys.modules if name.partition(".")[0] == "toy_framework"]:
            del sys.modules[name]
        registry._descriptions.clear()
        registry._descriptions.update(descriptions)
        registry._scanned = scanned
        base._made.cache_clear()
