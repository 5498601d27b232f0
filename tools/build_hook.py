"""Builds the JupyterLab extension and the widget while the distribution is built, where that is not done already.

A wheel and an sdist carry the result, so whoever installs them needs no Node. In a checkout, ``pip install -e .`` (that
is ``make setup``) builds again whenever a source has changed: a stamp beside the result holds the hash of the sources.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
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
_SHOWN_LINES = 30


class FrontEndHook(BuildHookInterface[Any]):
    """Runs npm before hatchling collects the files."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build what is missing or older than its sources."""
        FrontEnd(Path(self.root)).build_if_stale()


class FrontEnd:
    """The TypeScript of a checkout, or of an unpacked sdist.

    Parameters
    ----------
    root : Path
        Where ``pyproject.toml`` lies.
    """

    def __init__(self, root: Path) -> None:
        self.folder = root / "jupyter_ext"
        self.stamp = self.folder / ".built"
        self.results = (
            self.folder / "labextension" / "package.json",
            self.folder / "labextension" / "static" / "style.js",
            root / "det_native" / "display" / "static" / "live.js",
            root / "det_native" / "display" / "static" / "live.css",
            *(root / "det_native" / "display" / "static" / "page" / name for name in _PAGE),
        )

    def build_if_stale(self) -> None:
        """Build unless the results are those of the sources; without Node, older results are better than none."""
        built = all(path.is_file() for path in self.results)
        wanted = self._hash(self._sources())
        if built and self.stamp.is_file() and self.stamp.read_text() == wanted:
            return
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
        self._npm("run", "build:prod")
        missing = [str(path) for path in self.results if not path.is_file()]
        if missing:
            raise RuntimeError(f"`npm run build:prod` ended well, but did not write {', '.join(missing)}.")

    def _npm(self, *arguments: str) -> None:
        command = [shutil.which("npm") or "npm", "--loglevel=error", *arguments]
        done = subprocess.run(
            command, cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
        )
        if done.returncode != 0:
            end = "\n".join(done.stdout.splitlines()[-_SHOWN_LINES:])
            raise RuntimeError(f"`npm {' '.join(arguments)}` failed in {self.folder}:\n{end}")

    def _sources(self) -> Iterator[Path]:
        yield from (self.folder / name for name in _CONFIGURATION)
        for name in _FOLDERS:
            yield from sorted(path for path in (self.folder / name).rglob("*") if path.is_file())

    def _hash(self, paths: Iterator[Path] | list[Path]) -> str:
        found = hashlib.sha256()
        for path in paths:
            found.update(path.relative_to(self.folder).as_posix().encode() + b"\0")
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
