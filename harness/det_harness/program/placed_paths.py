"""Absolute paths of the notebook's machine: here they lead into the working directory, or to the store of data."""

from __future__ import annotations

import ast
import os
import sys
import types
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path

from det_native.capture.program_paths import constant_names, place_of, put_places
from det_native.schema.manifests import BundleManifest


class PlacedPaths:
    """Has a program, with its modules, use the paths that are there.

    Parameters
    ----------
    directory : Path
        The working directory, in which the files and links of the bundle are. What is not there is left as it is
        written: where the program runs in the notebook again, it leads to the file itself.
    """

    def __init__(self, bundle: BundleManifest, directory: Path) -> None:
        self._directory = directory
        found = {place.text: directory / place.target for place in bundle.places}
        self._places = {text: str(path) for text, path in found.items() if path.exists()}
        self._names = constant_names([ast.parse(cell.source) for cell in bundle.program.cells] if self._places else [])

    def word(self, word: str) -> str:
        """Return a word of the command line, which may be a path or an option with one: ``--data=/data/a.csv``."""
        name, equals, value = word.partition("=")
        if word.startswith("-") and equals:
            return f"{name}={self._place(value)}"
        return self._place(word)

    def _place(self, text: str) -> str:
        found = place_of(text, self._places)
        return text if found is None else found[1] + text[len(found[0]) :]

    def path_in_value(self, text: str) -> str:
        """Return the place of a path in a value; of what did not travel it is where it was, if that is here."""
        place = self._place(text)
        stays = place != text and os.path.exists(text) and not os.path.lexists(place) and not _is_empty(text)
        return text if stays else place

    def put_into(self, cell: ast.Module) -> None:
        """Change the paths of a cell."""
        if self._places:
            put_places(cell, self._names, self._places)

    def names_one(self, module: Path) -> bool:
        """Whether a module may name one of the paths: what of them begins its text."""
        source = module.read_text("utf-8", errors="replace")
        return any("/".join(text.split("/")[:2]) in source for text in self._places)

    def compiled(self, source: bytes, filename: str) -> types.CodeType:
        """Compile a script or module.

        Raises
        ------
        SyntaxError
        """
        tree = ast.parse(source, filename)
        if self._places:
            put_places(tree, constant_names([tree]), self._places)
        code: types.CodeType = compile(tree, filename, "exec", dont_inherit=True)
        return code

    @contextmanager
    def imported(self) -> Iterator[None]:
        """Have modules of the program compiled so that are imported in the block."""
        if not self._places:
            yield
            return
        finder = _Finder(self, self._directory.resolve())
        sys.meta_path.insert(0, finder)
        try:
            yield
        finally:
            sys.meta_path.remove(finder)


def _is_empty(path: str) -> bool:
    return os.path.isdir(path) and not os.listdir(path)


class _Finder(MetaPathFinder):
    def __init__(self, paths: PlacedPaths, folder: Path) -> None:
        self._paths, self._folder = paths, folder

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> ModuleSpec | None:
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is None or spec.origin is None or not isinstance(spec.loader, SourceFileLoader):
            return spec
        if self._folder in Path(spec.origin).resolve().parents and self._paths.names_one(Path(spec.origin)):
            spec.loader = _Loader(fullname, spec.origin, self._paths)
            spec.cached = None
        return spec


class _Loader(SourceFileLoader):
    def __init__(self, fullname: str, path: str, paths: PlacedPaths) -> None:
        super().__init__(fullname, path)
        self._paths = paths

    def get_code(self, fullname: str) -> types.CodeType:
        """Compile the module; what Python has kept of it was compiled otherwise."""
        path = self.get_filename(fullname)
        return self._paths.compiled(self.get_data(path), path)
