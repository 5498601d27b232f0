"""Which packages a machine needs, in the versions that are installed here."""

from __future__ import annotations

import ast
import json
import os
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, distribution, packages_distributions, requires, version
from pathlib import Path

from det_native.capture.bindings import imports_in
from det_native.errors import ArgumentError
from det_native.schema.packages import normal_name

#: What trains; taken along where no notebook says what is used.
_FRAMEWORKS = ("torch", "tensorflow")
# Built for processors only: the other machine takes the one that uses its GPUs, too.
_WITH_GPUS = {"tensorflow-cpu": "tensorflow"}
_OWN = ("det-native", "determined")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_EXTRA = re.compile(r"""extra\s*==\s*['"]([^'"]+)['"]""")
#: Extras that are chosen by a word of the configuration: the searcher, and where checkpoints lie.
_CONFIGURED = ("optuna", "s3")
_MAGIC = re.compile(r"^\s*[%!?]")


def pinned(notebook: Path | None, more: tuple[str, ...]) -> list[str]:
    """Return requirements: what det_native and configurations need, what the notebook imports or else the frameworks,
    and `more`.

    Parameters
    ----------
    more : tuple of str
        Further requirements; a bare name gets the version that is installed here.

    Raises
    ------
    ArgumentError
        If the notebook is none, or one of `more` is neither installed here nor has a version.
    """
    own = requires("det-native") or []
    names = [_NAME.match(line)[0] for line in own if "extra ==" not in line]  # type: ignore[index]
    names += _configured(own)
    known = packages_distributions()
    frameworks = [each for name in _FRAMEWORKS for each in known.get(name, [])]
    names += frameworks if notebook is None else _imported(notebook)
    found = {normal_name(name): text for name in names if (text := _pin(name)) is not None}
    for requirement in more:
        match = _NAME.match(requirement)
        text = requirement if match is None or match[0] != requirement else _pin(requirement)
        if match is None or text is None:
            raise ArgumentError(f"{requirement} is not installed here: write it with its version, {requirement}==1.0.")
        found[normal_name(match[0])] = text
    return sorted(found.values(), key=str.lower)


def installed_size(requirements: Iterable[str]) -> int:
    """Return how many bytes these packages take here, without what they depend on."""
    found = 0
    for requirement in requirements:
        with suppress(PackageNotFoundError):
            for file in distribution(requirement.partition("==")[0]).files or ():
                with suppress(OSError):
                    found += os.stat(file.locate()).st_size
    return found


def _configured(lines: Sequence[str]) -> list[str]:
    """Return what a configuration may ask for, of which no import tells, as far as all of it is installed here."""
    extras = {extra: [_NAME.match(line)[0] for line in lines if _extra(line) == extra] for extra in _CONFIGURED}  # type: ignore[index]
    return [name for names in extras.values() if all(map(_version, names)) for name in names]


def _extra(line: str) -> str | None:
    match = _EXTRA.search(line)
    return match[1] if match else None


def _imported(notebook: Path) -> list[str]:
    """Return the distributions of what a notebook's cells import; its own files and Python's modules have none."""
    try:
        cells = json.loads(notebook.read_text("utf-8"))["cells"]
        sources = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ArgumentError(f"{notebook} cannot be read as a notebook: {error}.") from error
    modules = {name for source in sources for name in _modules(source)} - sys.stdlib_module_names
    known = packages_distributions()
    return sorted({name for module in modules for name in known.get(module, []) if normal_name(name) not in _OWN})


def _modules(source: str) -> Iterator[str]:
    text = "\n".join("" if _MAGIC.match(line) else line for line in source.splitlines())
    try:
        tree = ast.parse(text)
    except SyntaxError:  # a cell in another language: %%bash
        return
    yield from (one.module.partition(".")[0] for one in imports_in(tree) if one.module and not one.level)


def _pin(name: str) -> str | None:
    found = _version(name)
    # A local part such as +cpu says for what this one was built; the other machine takes what fits it.
    normal = normal_name(name)
    return None if found is None else f"{_WITH_GPUS.get(normal, normal)}=={found.partition('+')[0]}"


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
