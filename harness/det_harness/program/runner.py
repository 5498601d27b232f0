"""Runs a bundle's program (the cells of a notebook, or a script) up to its recorded training call."""

from __future__ import annotations
import __future__

import ast
import asyncio
import contextlib
import inspect
import linecache
import sys
import threading
import types
from collections.abc import Callable, Coroutine, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from det_harness.program.calls import CallMatcher, ProgramSource
from det_harness.program.made_folders import made_folders
from det_harness.program.notebook_names import notebook_names
from det_harness.program.optional_cells import may_fail, passed_over
from det_harness.program.placed_paths import PlacedPaths
from det_harness.program.settled_paths import SettledPaths
from det_harness.program.values import bind
from det_harness.trial import rng
from det_native._version import PROTOCOL
from det_native.core.command import CommandCall
from det_native.errors import BundleCheckError, Problem, ProtocolMismatchError, TrialDefinitionError
from det_native.runtime import active_host
from det_native.schema.manifests import BundleManifest, StreamsEntry, ValueEntry
from det_native.schema.reports import CaptureRow

_FUTURES = 0
for _name in __future__.all_feature_names:
    _FUTURES |= getattr(__future__, _name).compiler_flag


class ProgramStop(BaseException):
    """Ends the user's program at the recorded call, through its ``finally`` and ``with`` blocks."""


def check_versions(bundle: BundleManifest) -> None:
    """Refuse a bundle that this process cannot run, before anything of it is loaded.

    Raises
    ------
    ProtocolMismatchError
        If it was made by a det_native that speaks another protocol.
    BundleCheckError
        If it was made with another minor version of Python, and has more than source.
    """
    if bundle.protocol != PROTOCOL:
        raise ProtocolMismatchError(
            f"The bundle speaks protocol {bundle.protocol}, this worker {PROTOCOL}: restart the older side "
            "(the notebook's kernel, or the master with `det down` and `det up`)."
        )
    minor = f"{sys.version_info.major}.{sys.version_info.minor}"
    if bundle.interpreter.minor != minor and bundle.bound_to_python:
        raise BundleCheckError(
            "The bundle does not fit this worker's Python:",
            [
                Problem(
                    "python",
                    f"the notebook runs Python {bundle.interpreter.minor}, the worker Python {minor}.",
                    "Values cannot travel between them; use the same minor version on both sides.",
                )
            ],
        )


class WentOnError(TrialDefinitionError):
    """The program went on after its recorded call."""


def swallowed(where: str) -> WentOnError:
    """Return the error for a program that went on, at `where`, after its recorded call had ended it."""
    return WentOnError(
        f"The program went on after its training call, in {where}: a bare `except:` or `except BaseException` around "
        "the call swallowed its end. Use `except Exception` there."
    )


class ProgramRunner:
    """Runs one program in a module of its own, called ``__main__``.

    Cells compile under names such as ``<cell [7]>`` whose source is known to tracebacks and ``inspect``. Outside
    IPython, ``display`` prints and ``get_ipython()`` gives an object that accepts and ignores every call and is false.

    Parameters
    ----------
    bundle : BundleManifest
        Its files are unpacked in `directory` already.

    Attributes
    ----------
    own_seed : bool
        Whether the trial has the seed that the notebook had: then draws after ``init()`` are the notebook's, too.
    add_rows : callable
        Takes rows for the report of the experiment.
    """

    def __init__(self, bundle: BundleManifest, read_blob: Callable[[str], bytes], directory: Path) -> None:
        self._bundle = bundle
        self._program = bundle.program
        self._read_blob = read_blob
        self._directory = directory
        self.source = ProgramSource(bundle.program, directory)
        self._places = PlacedPaths(bundle, directory)
        self._settled = SettledPaths(bundle.settled, (*bundle.files, *bundle.links), read_blob, directory)
        self.calls = CallMatcher(self.source)
        self.calls.bundle = bundle
        self.module = types.ModuleType("__main__")
        self.own_seed = False
        self.add_rows: Callable[[list[CaptureRow]], object] = lambda rows: None
        self._flags = 0
        self._private = False
        self.calls.at_init = lambda: self._set_streams_to(bundle.init_streams)
        self._output: Any = ""  # as IPython begins

    def run(self, *, private: bool = True) -> None:
        """Run the program until its recorded call ends it.

        Parameters
        ----------
        private : bool
            This process is a worker's own: cells may set its streams of random numbers.

        Raises
        ------
        ProtocolMismatchError, BundleCheckError
            If the bundle does not fit this process.
        TrialDefinitionError
            If the recorded call was not reached, its end was swallowed, or the program called ``sys.exit()``.
        Exception
            Whatever the program raises.
        """
        check_versions(self._bundle)
        with ExitStack() as stack:
            stack.enter_context(contextlib.chdir(self._directory))
            stack.enter_context(made_folders(self._bundle.folders, self._directory))
            stack.enter_context(self._places.imported())
            stack.enter_context(_main_module(self.module))
            stack.enter_context(notebook_names())
            self._private = private
            try:
                self._run_kind(stack)
            except ProgramStop:
                return
            except SystemExit as error:
                if self.calls.goes_on and error.code in (None, 0):
                    return
                raise self._exited(error).with_traceback(error.__traceback__) from error  # the place of the call
        if self.calls.goes_on:
            return
        raise TrialDefinitionError(
            f"The program ended without reaching {self.source.call_title()}. Does it depend on something that is "
            "different on a worker, such as a condition, a loop or a file?"
        )

    def _exited(self, error: SystemExit) -> TrialDefinitionError:
        """Return what is wrong with a program that has called ``sys.exit()``."""
        if self.calls.goes_on:
            return TrialDefinitionError(f"The program called sys.exit({error.code!r}) after its training.")
        if self.calls.taken:  # so it trains in a loop of its own
            return TrialDefinitionError(
                f"sys.exit({error.code!r}) was called in or behind the loop that trains in "
                f"{self.calls.last_place}. To fail the trial, raise an exception; to end its training early, leave the "
                "loop with `break`."
            )
        return TrialDefinitionError(
            f"The program called sys.exit({error.code!r}) before {self.source.call_title()} was reached. "
            "Remove that call: it would end every trial."
        )

    def _check_not_swallowed(self, where: str) -> None:
        if self.calls.taken and not self.calls.goes_on:
            raise swallowed(where)

    def _run_kind(self, stack: ExitStack) -> None:
        match self._program.kind:
            case "cells":
                self._run_cells(stack)
            case "script":
                self._run_script(stack)
            case "command":
                host = active_host()
                assert host is not None
                host.take_call("command", CommandCall(self._program.command))

    def _run_cells(self, stack: ExitStack) -> None:
        stack.enter_context(sys_path(str(self._directory)))
        loop = stack.enter_context(_event_loop())
        for index in range(len(self._program.cells)):
            self._settled.before_cell(index)
            self._bind(entry for entry in self._bundle.values if entry.before_cell == index)
            self.calls.enter_cell(index)
            self._set_streams(index)
            self._run_cell(index, loop)
            self._check_not_swallowed(self.source.title(self.source.unit(index)))

    def _bind(self, entries: Iterable[ValueEntry]) -> None:
        bound, names = [*entries], vars(self.module)
        with rng.preserved():  # a model that is built for its weights draws
            bind(bound, names, self._read_blob, self.place)

    def place(self, path: str) -> str:
        """Return the path that is used here instead of one in a value that travelled."""
        return self._places.path_in_value(path)

    def _set_streams(self, index: int) -> None:
        """Have a cell draw the random numbers that it drew in the notebook, and make up the same names.

        Never in a process that is the user's. Trials with other seeds draw others, but their names are the same.
        """
        for entry in self._bundle.streams:
            if entry.before_cell == index and self._private:
                other = not (entry.in_every_trial or self.own_seed)
                rng.apply_encoded(self._read_blob(entry.sha256), only_names=other)

    def _set_streams_to(self, entry: StreamsEntry | None) -> None:
        """Have a trial with the notebook's seed go on with random numbers of the notebook."""
        if entry is not None and self.own_seed and self._private:
            rng.apply_encoded(self._read_blob(entry.sha256))

    def _run_cell(self, index: int, run_coroutine: Callable[[Coroutine[Any, Any, Any]], Any]) -> None:
        last: Any = None
        for place, code in enumerate(self.compile_cell(index)):
            try:
                last = eval(code, self.module.__dict__)  # noqa: S307 (the user's own program)
                if inspect.iscoroutine(last) and code.co_flags & inspect.CO_COROUTINE:
                    last = run_coroutine(last)
            except (Exception, SystemExit) as error:
                if self.calls.taken or not may_fail(self._program.cells[index], place):
                    raise
                if rows := passed_over(self._program, index, place, error):
                    self.add_rows(rows)
                return
        if last is not None and not self._program.cells[index].source.rstrip().endswith(";"):
            self._keep_output(index, last)

    def _keep_output(self, index: int, value: Any) -> None:
        """Bind the value of a cell's last expression as IPython does: ``_``, ``__``, ``___``, ``_7`` and ``Out[7]``."""
        names = vars(self.module)
        outputs = names.setdefault("Out", {})
        number = self._program.cells[index].number
        if number is not None and isinstance(outputs, dict):
            names[f"_{number}"] = outputs[number] = value
        if names.get("_", "") is self._output:  # a user's own `_` stays
            names["___"], names["__"], names["_"] = names.get("__", ""), self._output, value
            self._output = value

    def compile_cell(self, index: int) -> list[types.CodeType]:
        """Compile a cell; its source becomes known to tracebacks. ``from __future__`` of earlier statements holds on.

        Each top-level statement is compiled by itself, the last expression so that it gives its value: so does IPython,
        and CPython makes other code of ``module.name()`` where the same compilation imports the module.

        Raises
        ------
        SyntaxError
        """
        source = self._program.cells[index].source
        filename = self.source.filename(index)
        linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
        tree = compile(source, filename, "exec", ast.PyCF_ONLY_AST | self._flags, dont_inherit=True)
        self._places.put_into(tree)
        return [
            self._compile_statement(statement, filename, is_last=statement is tree.body[-1]) for statement in tree.body
        ]

    def _compile_statement(self, statement: ast.stmt, filename: str, *, is_last: bool) -> types.CodeType:
        flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT | self._flags
        code: types.CodeType
        if is_last and isinstance(statement, ast.Expr):
            code = compile(ast.Expression(statement.value), filename, "eval", flags, dont_inherit=True)
        else:
            code = compile(ast.Module([statement], []), filename, "exec", flags, dont_inherit=True)
        self._flags |= code.co_flags & _FUTURES
        return code

    def _run_script(self, stack: ExitStack) -> None:
        path = self._directory / self._program.command[0]
        stack.enter_context(sys_path(str(path.parent)))
        stack.enter_context(_arguments([self._places.word(word) for word in self._program.command]))
        self.module.__file__ = str(path)
        self._bind(self._bundle.values)
        code = self.compile_script()
        exec(code, self.module.__dict__)  # noqa: S102 (the user's own program)
        self._check_not_swallowed(self._program.command[0])

    def compile_script(self) -> types.CodeType:
        """Compile the script.

        Raises
        ------
        SyntaxError
        """
        path = self._directory / self._program.command[0]
        return self._places.compiled(path.read_bytes(), str(path))


@contextmanager
def _main_module(module: types.ModuleType) -> Iterator[None]:
    previous = sys.modules.get("__main__")
    sys.modules["__main__"] = module
    try:
        yield
    finally:
        if previous is not None:
            sys.modules["__main__"] = previous


@contextmanager
def sys_path(folder: str) -> Iterator[None]:
    """Put a folder first on the import path; what the program adds or removes stays until the end of the block."""
    previous = list(sys.path)
    sys.path.insert(0, folder)
    try:
        yield
    finally:
        sys.path[:] = previous


@contextmanager
def _arguments(arguments: list[str]) -> Iterator[None]:
    previous = sys.argv
    sys.argv = arguments
    try:
        yield
    finally:
        sys.argv = previous


@contextmanager
def _event_loop() -> Iterator[Callable[[Coroutine[Any, Any, Any]], Any]]:
    """Give a function that runs the coroutine of a cell with top-level ``await``; one loop serves all cells."""
    runner = asyncio.Runner()

    def run(coroutine: Coroutine[Any, Any, Any]) -> Any:
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return runner.run(coroutine)
        # A notebook's kernel has a loop running in this thread already: run beside it.
        return _run_in_thread(coroutine)

    with contextlib.closing(runner):
        yield run


def _run_in_thread(coroutine: Coroutine[Any, Any, Any]) -> Any:
    results: list[Any] = []
    failures: list[BaseException] = []

    def body() -> None:
        try:
            results.append(asyncio.run(coroutine))
        except BaseException as error:  # noqa: BLE001 (raised again in the calling thread)
            failures.append(error)

    thread = threading.Thread(target=body, name="det-program")
    thread.start()
    thread.join()
    if failures:
        raise failures[0]
    return results[0]
