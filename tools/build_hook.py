"""Builds the JupyterLab extension and the widget while the distribution is built, where that is not done already.

A wheel and an sdist carry the result, so whoever installs them needs no Node. In a checkout, ``pip install -e .`` (that
is ``make setup``) builds again whenever a source has changed: a stamp beside the result holds the hash of the sources.
The types of the master's interface are made from its routes first, which needs the packages of the master.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

OLDEST_NODE = 20
_CONFIGURATION = (
    "package.json",
    "package-lock.json",
    "tsconfig.json",
    "tsconfig.build.json",
    "build-widget.mjs",
    "build-page.mjs",
)
_PAGE = ("index.html", "page.js", "page.css")
_FOLDERS = ("src", "style", "schema")
# What the description of the master's interface is made of.
_INTERFACE = ("det_native/schema", "det_native/master/api", "tools/openapi.py")
_SHOWN_LINES = 30


class FrontEndHook(BuildHookInterface[Any]):
    """Runs npm before hatchling collects the files."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build what is missing or older than its sources."""
        FrontEnd(Path(self.root)).build_if_stale()

    def dependencies(self) -> list[str]:
        """Return what pip installs for an isolated build: the master's packages, to describe its interface."""
        root = Path(self.root)
        if FrontEnd(root).is_built() or _hindrance() is not None:
            return []
        project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        return list(project["dependencies"])


class FrontEnd:
    """The TypeScript of a checkout, or of an unpacked sdist.

    Parameters
    ----------
    root : Path
        Where ``pyproject.toml`` lies.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.folder = root / "jupyter_ext"
        self.stamp = self.folder / ".built"
        self.results = (
            self.folder / "src" / "generated" / "rest.ts",
            self.folder / "labextension" / "package.json",
            self.folder / "labextension" / "static" / "style.js",
            root / "det_native" / "display" / "static" / "live.js",
            root / "det_native" / "display" / "static" / "live.css",
            *(root / "det_native" / "display" / "static" / "page" / name for name in _PAGE),
        )

    def is_built(self) -> bool:
        """Return whether the results are those of the sources."""
        built = all(path.is_file() for path in self.results)
        return built and self.stamp.is_file() and self.stamp.read_text() == self.fingerprint()

    def fingerprint(self) -> str:
        """Return the hash of all sources."""
        return self._hash(self._sources())

    def build_if_stale(self) -> None:
        """Build unless the results are those of the sources; without Node, older results are better than none."""
        if self.is_built():
            return
        built = all(path.is_file() for path in self.results)
        wanted = self.fingerprint()
        hindrance = _hindrance()
        if hindrance is None:
            self._build()
            self.stamp.write_text(wanted)
        elif built:
            print(f"The front end is not built anew: {hindrance}", file=sys.stderr)
        else:
            raise RuntimeError(f"The front end of det_native must be built once. {hindrance}")

    def _build(self) -> None:
        locked = self.folder / "node_modules" / ".det-lock"
        lock = self._hash([self.folder / "package-lock.json"])
        if not locked.is_file() or locked.read_text() != lock:
            self._npm("ci")
            locked.write_text(lock)
        # Files have the hash of their content in their names: what an earlier build left would travel along.
        for name in ("labextension", "lib"):
            shutil.rmtree(self.folder / name, ignore_errors=True)
        self._describe()
        self._npm("run", "types")
        self._npm("run", "build:prod")
        missing = [str(path) for path in self.results if not path.is_file()]
        if missing:
            raise RuntimeError(f"`npm run build:prod` ended well, but did not write {', '.join(missing)}.")

    def _describe(self) -> None:
        """Write the description of the master's interface, by the code of this tree."""
        paths = [str(self.root), *filter(None, [os.environ.get("PYTHONPATH")])]
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths)}
        self._run([sys.executable, str(self.root / "tools" / "openapi.py")], env=environment)

    def _npm(self, *arguments: str) -> None:
        self._run([shutil.which("npm") or "npm", "--loglevel=error", *arguments])

    def _run(self, command: list[str], env: dict[str, str] | None = None) -> None:
        done = subprocess.run(
            command, cwd=self.folder, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
        )
        if done.returncode != 0:
            end = "\n".join(done.stdout.splitlines()[-_SHOWN_LINES:])
            raise RuntimeError(f"`{' '.join(command)}` failed in {self.folder}:\n{end}")

    def _sources(self) -> Iterator[Path]:
        yield from (self.folder / name for name in _CONFIGURATION)
        folders = [self.folder / name for name in _FOLDERS] + [self.root / name for name in _INTERFACE]
        for folder in folders:
            yield from sorted(path for path in (folder, *folder.rglob("*")) if self._is_source(path))

    def _is_source(self, path: Path) -> bool:
        generated = self.folder / "src" / "generated"
        return path.is_file() and path.parent != generated and path.suffix not in {".pyc", ".pyo"}

    def _hash(self, paths: Iterator[Path] | list[Path]) -> str:
        found = hashlib.sha256()
        for path in paths:
            found.update(path.relative_to(self.root).as_posix().encode() + b"\0")
            found.update(hashlib.sha256(path.read_bytes()).digest())
        return found.hexdigest()


def _hindrance() -> str | None:
    """Return why nothing can be built here, or None."""
    node = shutil.which("node")
    if node is None or shutil.which("npm") is None:
        return f"Install Node.js {OLDEST_NODE} or newer, with npm, and repeat the command."
    told = subprocess.run([node, "--version"], capture_output=True, text=True, check=False).stdout.strip()
    major = told.lstrip("v").partition(".")[0]
    if not major.isdigit() or int(major) < OLDEST_NODE:
        return f"Node.js {told or '?'} is too old: install {OLDEST_NODE} or newer, and repeat the command."
    return None
