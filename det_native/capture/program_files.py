"""The files of a program, whoever made it: the user's modules, and the data files that it names."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from det_native.capture.collector import DataFiles
from det_native.capture.data import collect_data
from det_native.capture.explain_secrets import secret_problems
from det_native.capture.failure import before
from det_native.capture.model import Capture, CapturedPaths, Request
from det_native.capture.modules import ModuleFiles, collect_modules, imported_modules
from det_native.capture.own_folder import own_paths
from det_native.capture.packages import packages_of
from det_native.capture.seen_files import SeenFiles
from det_native.capture.value_paths import ValuePaths
from det_native.errors import Problem
from det_native.schema.manifests import ReadEntry


@dataclass
class ProgramFiles:
    """What was added to a capture, and what there is to say of it.

    Attributes
    ----------
    texts : list of (source, label)
        The modules' own.
    """

    modules: ModuleFiles
    data: DataFiles
    texts: list[tuple[str, str]]
    problems: list[Problem] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


def add_files(
    capture: Capture,
    sources: Sequence[tuple[str, str]],
    request: Request,
    roots: Sequence[Path],
    working_directory: Path,
    *,
    titles: Mapping[str, str] | None = None,
    of_values: Iterable[tuple[str, str]] = (),
    arguments: Sequence[str] = (),
    seen: SeenFiles | None = None,
    values: ValuePaths | None = None,
    without_data: Collection[str] = (),
) -> ProgramFiles:
    """Add to a capture the files that its program needs, and the packages that it imports.

    Parameters
    ----------
    capture : Capture
        With its program.
    sources : sequence of (source, label)
        The cells of the program, or the script.
    roots : sequence of Path
        Folders whose modules are sent; the first one is that of the user's files.
    working_directory : Path
        What relative paths are relative to.
    titles : mapping of str to str, optional
        How labels are called at the beginning of a sentence.
    of_values : iterable of (module, label)
        Modules that values need.
    arguments : sequence of str
        What the program is started with.
    values : ValuePaths, optional
        See ``collect_data``.
    without_data : collection of str
        Texts of cells that nothing needs, and that name large files: none is sent for them.
    """
    of_values = list(of_values)
    calls = (capture.program.call, capture.program.init) if capture.program.kind == "cells" else ()
    names = [(name, label) for source, label in sources for name in imported_modules(source)]
    names += [*of_values, *((Path(one.file).stem, "") for one in calls if one is not None and one.file is not None)]
    context = request.context_dir
    modules = collect_modules(names, list(dict.fromkeys(roots)), request.include, context)
    optional = seen.optional if seen is not None else {}
    if modules.problems and optional:  # what may fail there may fail to import
        certain = [(before(text, optional[label]) if label in optional else text, label) for text, label in sources]
        needed = [*((name, label) for text, label in certain for name in imported_modules(text)), *of_values]
        modules.problems = collect_modules(needed, list(dict.fromkeys(roots)), request.include, context).problems
    readable = {target: source for source, target in modules.sources}
    python = [file for file in modules.files if file.target in readable]
    texts = [(readable[file.target], file.target) for file in python]
    data = collect_data(
        [*(source for source in sources if source[0] not in without_data), *texts],
        roots[0],
        working_directory,
        context,
        titles,
        arguments,
        seen=seen,
        values=values,
    )
    capture.packages = packages_of([*sources, *modules.sources], of_values, optional)
    capture.files = [*modules.files, *data.files]
    root = roots[0].resolve()
    made_by_text = {root / target for target in data.made}
    capture.paths = CapturedPaths(
        root=root,
        reads=[ReadEntry(path=path, where=where) for path, where in data.reads],
        outside=data.outside,
        own=list(own_paths([*sources, *texts], arguments, root)),
        folders=data.folders,
        made=seen.maker if seen is not None else None,
        makes=lambda path: path in made_by_text or (seen is not None and seen.makes_folder(path)),
    )
    capture.notes.rows.extend([*modules.rows, *data.rows])
    found = ProgramFiles(modules, data, texts, list(modules.problems), [*modules.warnings, *data.warnings])
    for file, (text, target) in zip(python, texts, strict=True):
        if file.path not in request.include:
            found.problems.extend(secret_problems(text, target, request.values, form_only=True))
    return found
