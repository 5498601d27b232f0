"""The user's own modules that a program imports, as files to send."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from det_native.capture.bindings import imports_in
from det_native.capture.folders import files_in
from det_native.capture.model import SourceFile
from det_native.capture.nesting import NOT_PYTHON, not_python
from det_native.capture.syntax import tree_of
from det_native.errors import Problem
from det_native.heap.ownership import is_library_file
from det_native.schema.reports import CaptureRow

_DATA_LIMIT = 1 << 20


def is_installed(path: Path, root: Path) -> bool:
    """Whether a file in a folder of the user's is one of Python or an installed package all the same."""
    prefix = Path(sys.prefix)
    return is_library_file(str(path)) or (prefix in path.parents and root in prefix.parents)


def module_file(name: str) -> Path | None:
    """Return the source file of a module (imported or not), None if it has none or does not exist."""
    module = sys.modules.get(name)
    file = getattr(module, "__file__", None) if module is not None else None
    if file is None and module is None:
        try:
            spec = importlib.util.find_spec(name)
        except (ImportError, ValueError, AttributeError):
            return None
        file = spec.origin if spec is not None and spec.has_location else None
    return Path(file) if file and Path(file).suffix == ".py" else None


def is_local(name: str) -> bool:
    """Whether a module (by its full or top-level name) is a file of the user's."""
    if name in {"__main__", "builtins"} or name.partition(".")[0] in sys.stdlib_module_names:
        return False
    file = module_file(name.partition(".")[0])
    if file is not None:
        return not is_library_file(str(file))
    return _namespace_folder(name.partition(".")[0]) is not None


def _namespace_folder(name: str) -> Path | None:
    """Folder of a package without ``__init__.py`` that is the user's."""
    module = sys.modules.get(name)
    paths = list(getattr(module, "__path__", ())) if module is not None else _found_namespace(name)
    folder = Path(paths[0]) if paths and getattr(module, "__file__", None) is None else None
    return folder if folder is not None and not is_library_file(str(folder)) else None


def _found_namespace(name: str) -> list[str]:
    """Folders of such a package that is not imported yet."""
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError, AttributeError):
        return []
    return list(spec.submodule_search_locations or ()) if spec is not None and spec.origin is None else []


@dataclass
class ModuleFiles:
    """What :func:`collect_modules` found: files to send, and why something is not."""

    files: list[SourceFile] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    rows: list[CaptureRow] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    #: Source and target of every one that is read, sent by itself or with its folder.
    sources: list[tuple[str, str]] = field(default_factory=list)


def imported_modules(source: str, package: str = "") -> Iterator[str]:
    """Yield full names of the modules that a piece of source imports, anywhere in it.

    Parameters
    ----------
    package : str
        Package of the module that the source is of, for relative imports.
    """
    for one in imports_in(tree_of(source)):
        module = one.source(package)
        if module:
            yield module
            if one.attribute not in ("", "*"):
                yield f"{module}.{one.attribute}"


def collect_modules(
    names: Iterable[tuple[str, str]], roots: Sequence[Path], included: Sequence[Path], context_dir: Path | None
) -> ModuleFiles:
    """Return the files of the user's modules, with those that they import in turn.

    Parameters
    ----------
    names : iterable of (module, label)
        Modules that the program imports, and the cell that does.
    roots : sequence of Path
        Folders whose modules are sent: the context directory, the notebook's folder.
    included : sequence of Path
        Files and folders that the user named in ``include=``.
    context_dir : Path or None
        Sent whole; files in it that lie where they are imported from need no entry.
    """
    collector = _Collector([root.resolve() for root in roots], [path.resolve() for path in included], context_dir)
    for name, label in names:
        collector.add(name, label)
    return collector.found


class _Collector:
    def __init__(self, roots: list[Path], included: list[Path], context_dir: Path | None) -> None:
        self.roots, self.included = roots, included
        self.context_dir = context_dir.resolve() if context_dir is not None else None
        self.found = ModuleFiles()
        self.tops: set[str] = set()
        self.sent: set[Path] = set()

    def add(self, name: str, label: str) -> None:
        top = name.partition(".")[0]
        if top in self.tops or not is_local(top):
            return
        self.tops.add(top)
        file = module_file(top)
        folder = file.parent if file is not None and file.name == "__init__.py" else None
        if file is None:
            folder = _namespace_folder(top)
        place = (folder or file or Path()).resolve()
        if not self._may_send(place):
            self._reject(top, place)
            return
        self.found.names.append(top)
        if folder is not None:
            self._package(folder.resolve(), top, label)
        elif file is not None:
            self._file(file.resolve(), f"{top}.py", label, "")

    def _may_send(self, place: Path) -> bool:
        if any(place == path or path in place.parents for path in self.included):
            return True
        return any(root in place.parents for root in self.roots)

    def _reject(self, top: str, place: Path) -> None:
        if top in importlib.metadata.packages_distributions():
            self.found.rows.append(
                CaptureRow(
                    what=top, how="installed package", size=0, status="not sent", note=f"editable, in {place.parent}"
                )
            )
            return
        self.found.problems.append(
            Problem(
                "",
                f"`{place.name}` is imported from outside the notebook's folder ({place.parent}).",
                f"Add it: init(..., include=['{place}']).",
            )
        )

    def _package(self, folder: Path, top: str, label: str) -> None:
        for file in files_in(folder):
            inside = file.relative_to(folder)
            target = f"{top}/{inside.as_posix()}"
            if file.suffix == ".py":
                package = ".".join([top, *inside.parent.parts])
                self._file(file, target, label, package)
            elif file.stat().st_size <= _DATA_LIMIT:
                self._send(file, target, label, f"data of the package `{top}`")
            elif self.context_dir is None or self.context_dir not in file.parents:
                note = "larger than 1 MiB: name it in include= if the package needs it"
                row = CaptureRow(what=target, how="file", size=file.stat().st_size, status="not sent", note=note)
                self.found.rows.append(row)

    def _file(self, file: Path, target: str, label: str, package: str) -> None:
        if file in self.sent:
            return
        self._send(file, target, label, "module imported by the program")
        try:
            source = file.read_text(encoding="utf-8")
            names = list(imported_modules(source, package))
        except NOT_PYTHON as error:
            self.found.problems.append(not_python(str(file), error))
            return
        self.found.sources.append((source, target))
        for name in names:
            self.add(name, label)

    def _send(self, file: Path, target: str, label: str, why: str) -> None:
        self.sent.add(file)
        in_place = self.context_dir is not None and file == self.context_dir / target
        if not in_place:
            self.found.files.append(SourceFile(file, target, why, label))
