"""Which packages a machine needs, in the versions that are installed here."""

from __future__ import annotations

import ast
import json
import re
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, packages_distributions, requires, version
from pathlib import Path

from det_native.errors import ArgumentError

#: What trains; taken along where no notebook says what is used.
_FRAMEWORKS = ("torch", "tensorflow")
# Built for processors only: the other machine takes the one that uses its GPUs, too.
_WITH_GPUS = {"tensorflow-cpu": "tensorflow"}
_OWN = ("det-native", "determined")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_MAGIC = re.compile(r"^\s*[%!?]")


def pinned(notebook: Path | None, more: tuple[str, ...]) -> list[str]:
    """Return requirements: what det_native needs, what the notebook imports or else the frameworks, and `more`.

    Parameters
    ----------
    notebook : Path or None
    more : tuple of str
        Further requirements; a bare name gets the version that is installed here.

    Raises
    ------
    ArgumentError
        If the notebook is none, or one of `more` is neither installed here nor has a version.
    """
    names = [_NAME.match(line)[0] for line in requires("det-native") or [] if "extra ==" not in line]  # type: ignore[index]
    known = packages_distributions()
    frameworks = [each for name in _FRAMEWORKS for each in known.get(name, [])]
    names += frameworks if notebook is None else _imported(notebook)
    found = {_normal(name): text for name in names if (text := _pin(name)) is not None}
    for requirement in more:
        match = _NAME.match(requirement)
        text = requirement if match is None or match[0] != requirement else _pin(requirement)
        if match is None or text is None:
            raise ArgumentError(f"{requirement} is not installed here: write it with its version, {requirement}==1.0.")
        found[_normal(match[0])] = text
    return sorted(found.values(), key=str.lower)


def _imported(notebook: Path) -> list[str]:
    """Return the distributions of what a notebook's cells import; its own files and Python's modules have none."""
    try:
        cells = json.loads(notebook.read_text("utf-8"))["cells"]
        sources = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ArgumentError(f"{notebook} cannot be read as a notebook: {error}.") from error
    modules = {name for source in sources for name in _modules(source)} - sys.stdlib_module_names
    known = packages_distributions()
    return sorted({name for module in modules for name in known.get(module, []) if _normal(name) not in _OWN})


def _modules(source: str) -> Iterator[str]:
    text = "\n".join("" if _MAGIC.match(line) else line for line in source.splitlines())
    try:
        tree = ast.parse(text)
    except SyntaxError:  # a cell in another language: %%bash
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.partition(".")[0]


def _pin(name: str) -> str | None:
    found = _version(name)
    # A local part such as +cpu says for what this one was built; the other machine takes what fits it.
    normal = _normal(name)
    return None if found is None else f"{_WITH_GPUS.get(normal, normal)}=={found.partition('+')[0]}"


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
