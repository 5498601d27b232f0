"""Loads a bundle in a fresh process without running its cells, and says everything that would go wrong."""

from __future__ import annotations

import ast
import contextlib
import importlib
import os
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

from det_harness.frameworks.base import harness_of
from det_harness.program.reads import notices, unreadable
from det_harness.program.runner import ProgramRunner, check_versions
from det_harness.program.search_path import search_path
from det_harness.program.user_errors import describe
from det_native.capture.bindings import imports_in
from det_native.capture.failure import before
from det_native.core.command import script_of
from det_native.errors import DetError, Problem, ProblemsError, StorageError
from det_native.frameworks import get_framework
from det_native.heap.values import check_values
from det_native.schema.job import CheckJob
from det_native.schema.manifests import BundleManifest
from det_native.schema.rest import BundleChecked, ProblemInfo
from det_native.storage.blobs import BlobStore
from det_native.storage.cached_blobs import blobs_of_job
from det_native.storage.linked_data import link_files
from det_native.storage.reached import check_reached
from det_native.storage.unpack import unpack_bundle


def check_bundle(job: CheckJob) -> BundleChecked:
    """Unpack, check versions, compile the cells, import the local modules, unpickle the values.

    Cells are not run; the local modules that they import are.
    """
    work = Path(job.directory) / "work"
    blobs = blobs_of_job(job.blobs, job.storage_options, job.cache)
    try:
        for address, mark in job.marks.items():
            check_reached(address, job.storage_options, mark)
    except StorageError as error:
        return _result([Problem("storage", str(error))])
    try:
        get_framework(job.bundle.program.framework)
        check_versions(job.bundle)
        unpack_bundle(job.bundle, blobs, work)
        link_files(job.bundle.links, job.data, work, job.storage_options, job.cache)
    except ProblemsError as error:
        return _result(error.problems)
    except DetError as error:
        return _result([Problem("bundle", str(error))])
    runner = ProgramRunner(job.bundle, blobs.read, work)
    with _at(work):
        problems = [*_compile(runner, job.bundle, work), *unreadable(job.bundle.reads)]
        if not problems:
            importlib.import_module("det_native.compat")  # as on a worker: modules may import `determined`
            harness_of(job.bundle.program.framework).prepare_process()
            problems += _import_modules(runner, job.bundle, work)
            problems += _decode_values(job.bundle, blobs)
    return _result(problems, [*notices(job.bundle.reads)])


def _result(problems: Sequence[Problem], said: Sequence[str] = ()) -> BundleChecked:
    found = [ProblemInfo(where=one.where, what=one.what, remedy=one.remedy) for one in problems]
    return BundleChecked(ok=not found, problems=found, notices=list(said))


@contextlib.contextmanager
def _at(work: Path) -> Iterator[None]:
    """Be where the program would be."""
    before, path = Path.cwd(), list(sys.path)
    os.chdir(work)
    sys.path.insert(0, str(work))
    try:
        yield
    finally:
        os.chdir(before)
        sys.path[:] = path


def _compile(runner: ProgramRunner, bundle: BundleManifest, work: Path) -> Iterator[Problem]:
    if bundle.program.kind == "script":
        yield from _compiled(bundle.program.command[0], runner.compile_script)
        return
    if bundle.program.kind == "command":
        yield from _command_problems(bundle.program.command, work)
        return
    for index in range(len(bundle.program.cells)):
        title = runner.source.title(runner.source.unit(index))
        yield from _compiled(title, partial(runner.compile_cell, index))


def _command_problems(words: Sequence[str], work: Path) -> Iterator[Problem]:
    if shutil.which(words[0], path=search_path()) is None:
        yield Problem(
            f"entrypoint {words[0]}",
            "names no Trial class (model_def:MyTrial), and no command that a worker can start: it is neither on the "
            "PATH there, nor an executable file in the directory.",
            "Name a script (python3 train.py), or install what is missing.",
        )
    script = script_of(words)
    if script is not None and (work / script).is_file():
        yield from _compiled(script, partial(compile, (work / script).read_bytes(), script, "exec"))


def _compiled(title: str, compile_it: Callable[[], object]) -> Iterator[Problem]:
    try:
        compile_it()
    except (SyntaxError, ValueError, OSError) as error:
        line = getattr(error, "lineno", None)
        where = f"{title}, line {line}" if line else title
        yield Problem(where, f"{type(error).__name__}: {getattr(error, 'msg', error)}")


def _import_modules(runner: ProgramRunner, bundle: BundleManifest, work: Path) -> Iterator[Problem]:
    """Import the modules of the bundle that its program needs; these import the others that they need."""
    for name in _imported_names(bundle, work):
        try:
            importlib.import_module(name)
        except (Exception, SystemExit) as error:  # noqa: BLE001 (whatever the module's code raises)
            yield Problem(f"module {name}", describe(error, runner.source).traceback)


def _imported_names(bundle: BundleManifest, work: Path) -> list[str]:
    local = {entry.path.split("/")[0].removesuffix(".py") for entry in bundle.files if entry.path.endswith(".py")}
    # What may fail there may fail to import.
    sources = [
        cell.source if cell.optional_from is None else before(cell.source, cell.optional_from)
        for cell in bundle.program.cells
    ]
    if bundle.program.kind == "script":
        sources = [(work / bundle.program.command[0]).read_text(encoding="utf-8")]
    names: dict[str, None] = {}
    for source in sources:
        names.update(dict.fromkeys(one.module for one in imports_in(ast.parse(source)) if not one.level))
    return [name for name in names if name.partition(".")[0] in local]


def _decode_values(bundle: BundleManifest, blobs: BlobStore) -> Iterator[Problem]:
    for entry in bundle.values:
        try:
            check_values(blobs.read(entry.sha256))
        except Exception as error:  # noqa: BLE001 (unpickling may raise anything)
            yield Problem(
                f"value {entry.name}",
                f"it does not load in a fresh process: {type(error).__name__}: {error}",
                "Let the cell that makes it run on the worker instead, or send what it is made of.",
            )
