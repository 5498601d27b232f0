"""The log of what a notebook's kernel executed, kept from the moment that det_native is imported.

Only the standard library is imported here, with modules of ours that import no more, and IPython not before it runs.
"""

from __future__ import annotations

import re
import sys
import time
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from det_native.capture import submitted
from det_native.capture.first_imports import ImportDraws, first_imports
from det_native.capture.shell_state import (
    cell_that_runs,
    compiled_files,
    has_only_imported,
    parent_metadata,
    seconds_since_request,
    without_last_newlines,
)
from det_native.capture.tracebacks import told_line, top_line
from det_native.errors import is_own
from det_native.frameworks import known_frameworks
from det_native.own_time import spent
from det_native.process.streams import beginnings, current_streams, stream_of

if TYPE_CHECKING:
    from det_native.capture.side_effects.paths_seen import PathsSeen
    from det_native.capture.watch import Effects

#: Seconds above which running a cell again is worth a warning.
SLOW = 60.0
_TAG = re.compile(r"^\s*#\s*(det-skip|det-include)\b")


@dataclass(frozen=True)
class CallRecord:
    """A training call that was made: where, and while which execution ran.

    Attributes
    ----------
    running : int
        Index of the execution that was running.
    file : str
        File name of the code object that made the call.
    line, column : int
        Position there, as Python reports it.
    magic_line : int or None
        For a call compiled by ``%time`` and the like: the line of the cell that has the magic.
    """

    kind: str
    running: int
    file: str
    line: int
    column: int
    magic_line: int | None = None
    running_line: int = 1


@dataclass
class FrontEnd:
    """What the front end says of a cell."""

    cell_id: str | None = None
    tags: frozenset[str] = frozenset()


@dataclass
class Timing:
    """When an execution ran.

    Attributes
    ----------
    started, clock : float or None
        By the time of day, and by the clock that measures.
    duration : float or None
        Seconds; None while it runs, and where it began before det_native was imported and nothing tells when.
    importing, elsewhere : float
        Seconds of these that first imports of modules took, and in which trainings were sent, or waited for.
    """

    started: float | None = None
    clock: float | None = None
    duration: float | None = None
    importing: float = 0.0
    elsewhere: float = 0.0


@dataclass
class Ending:
    """How an execution ended.

    Attributes
    ----------
    succeeded : bool or None
        None while it runs.
    recorded : bool
        False for executions taken from the history: they count as successful unless IPython remembers an error.
    ran : bool
        False if it did not even compile.
    error_line : int or None
        Line (of IPython's transformed text) of the cell's top level at which it failed.
    error_in_body : bool
        That line is one of the body of a cell magic (``%%time``), which was compiled by itself.
    refused : bool
        It failed because det_native refused a call, or told how a training has ended: nothing was done by that.
    interrupted : bool
        It failed because the user has interrupted it.
    """

    succeeded: bool | None = None
    recorded: bool = True
    ran: bool = True
    error_line: int | None = None
    error_in_body: bool = False
    refused: bool = False
    interrupted: bool = False


@dataclass
class Seen:
    """What was seen of an execution.

    Attributes
    ----------
    streams : dict or None
        The states of the streams of random numbers before it, if it has moved one; see ``streams``. Those of a
        library that it was the first to import are of that moment.
    effects : Effects or None
        What it did to values; None of what ran before anybody looked.
    outside : tuple of str
        What it did outside of the process.
    drew : bool
        Whether it asked the system for random bytes, which nobody restores.
    paths : PathsSeen or None
        What it came upon that it made, replaced or removed; None of what ran before anybody looked.
    trained : frozenset of str
        Names of models that it has trained in a way that cannot be repeated; see ``trained``.
    """

    streams: dict[str, Any] | None = None
    effects: Effects | None = None
    outside: tuple[str, ...] = ()
    drew: bool = False
    paths: PathsSeen | None = None
    trained: frozenset[str] = frozenset()


@dataclass
class LoggedExecution:
    """One execution of the kernel.

    Attributes
    ----------
    index : int
        Place in the log, from 0.
    number : int or None
        What the notebook shows in brackets; None for code that is kept out of the history.
    source : str
        Raw text, magics and all.
    files : dict
        File names of its code objects; 1 for code made of the body of a cell magic, 0 for the whole cell.
    """

    index: int
    number: int | None
    source: str
    files: dict[str, int] = field(default_factory=dict)
    front_end: FrontEnd = field(default_factory=FrontEnd)
    time: Timing = field(default_factory=Timing)
    ending: Ending = field(default_factory=Ending)
    seen: Seen = field(default_factory=Seen)

    @property
    def cell(self) -> str:
        """Identity of the cell: its id where the front end gives one, else its text."""
        return self.front_end.cell_id or self.source.strip()


class ExecutionLog:
    """What a shell executed, in order.

    Parameters
    ----------
    shell : InteractiveShell
        IPython's shell; :meth:`attach` registers the hooks that keep the log.
    """

    def __init__(self, shell: Any) -> None:
        from det_native.capture.side_effects.audit import outside  # only a notebook is looked at
        from det_native.capture.trained import Trainings
        from det_native.capture.watch import Watch

        self.shell = shell
        self.executions: list[LoggedExecution] = []
        self.calls: list[CallRecord] = []
        self.attached = time.time()
        self._running: list[LoggedExecution | None] = []
        self._imported = 0.0  # seconds of imports until the running execution began
        self._elsewhere = 0.0  # likewise of sending and waiting
        self._watch = Watch()
        self._trainings = Trainings()
        self._outside = outside
        self.fixed: frozenset[str] = frozenset()
        self.looked_up: dict[str, frozenset[str]] = {}

    @property
    def running(self) -> LoggedExecution | None:
        """The execution that is running now, None between executions."""
        outermost = [execution for execution in self._running if execution is not None]
        return outermost[0] if outermost else None

    def sharing(self, name: str) -> frozenset[str]:
        """Return names whose values have objects in common with that of another one."""
        return self._watch.sharing(name, self.shell.user_ns)

    def attach(self) -> None:
        """Take over the history so far, and record from now on."""
        self._outside.listen()
        first_imports.measure()
        for module in beginnings():
            first_imports.call_after(module, partial(self._note_beginning, module))
        for framework in known_frameworks():
            drawn = ImportDraws(lambda: self.running.seen if self.running is not None else None)
            first_imports.call_around(framework.module, drawn.begin, drawn.end)
        self._take_history()
        self._watch.begin(self.shell.user_ns, self.shell.user_ns_hidden, "")
        self.fixed = self._watch.fixed()
        self.looked_up = {name: names for name in self.shell.user_ns if (names := self._watch.looked_up(name))}
        self.shell.events.register("pre_run_cell", self._before)
        self.shell.events.register("post_run_cell", self._after)

    def owner_of(self, file: str) -> LoggedExecution | None:
        """Return the latest execution that has a code object of this file name."""
        for execution in reversed(self.executions):
            if file in execution.files:
                return execution
        return None

    def _take_history(self) -> None:
        history = getattr(self.shell, "history_manager", None)
        if history is None:
            return
        raw, parsed = list(history.input_hist_raw), list(history.input_hist_parsed)
        errors = getattr(history, "exceptions", {})
        last = self.shell.execution_count - 1
        compiled = compiled_files()
        for number, source in enumerate(raw):
            if number == 0 or not source.strip():
                continue
            transformed = parsed[number] if number < len(parsed) else source
            execution = self._append(number, source, transformed)
            execution.files |= dict.fromkeys(compiled.get(without_last_newlines(transformed), ()), 0)
            error = errors.get(number)
            ran = error is None or error.get("ename") not in {"SyntaxError", "IndentationError", "TabError"}
            line = told_line(error, number) if error is not None else None
            execution.ending = Ending(error is None, recorded=False, ran=ran, error_line=line)
        if self.executions and self.executions[-1].number == last:
            self._take_running(self.executions[-1])
        else:
            self._take_unstored()

    def _take_unstored(self) -> None:
        """Take over a cell that runs now and is kept out of the history: ``ipython -c``."""
        running = cell_that_runs()
        if running is not None and not running["silent"] and running["raw_cell"].strip():
            source = running["raw_cell"]
            self._take_running(self._append(None, source, running.get("cell") or source))

    def _take_running(self, execution: LoggedExecution) -> None:
        execution.ending = replace(execution.ending, recorded=True, succeeded=None)
        execution.seen.streams = current_streams()  # what imports det_native does so before it draws, most likely
        metadata = parent_metadata(self.shell)
        execution.front_end.cell_id = metadata.get("cellId")
        execution.front_end.tags |= frozenset(metadata.get("tags") or ())
        execution.time.started = time.time()
        before = seconds_since_request(self.shell) if execution.number == 1 else None
        if before is not None:
            execution.time.started -= before
            execution.time.clock = time.perf_counter() - before
            # What was imported above det_native is measured by nobody.
            self._imported = first_imports.seconds - (before if has_only_imported(execution.files) else 0.0)
        execution.seen.paths = self._outside.begin_paths()
        self._running.append(execution)

    def _note_beginning(self, module: str) -> None:
        """Note the stream of a library that the running cell has just imported: it may draw from it."""
        running = self.running
        if running is not None and running.seen.streams is not None:
            running.seen.streams = stream_of(module) | running.seen.streams

    def _append(self, number: int | None, source: str, transformed: str) -> LoggedExecution:
        execution = LoggedExecution(len(self.executions), number, source)
        execution.front_end.tags = comment_tags(source)
        execution.files[self._file_name(source, transformed, number or self.shell.execution_count)] = 0
        self.executions.append(execution)
        return execution

    def _file_name(self, source: str, transformed: str, number: int) -> str:
        return str(self.shell.compile.get_code_name(source, transformed, number))

    def _before(self, info: Any) -> None:
        transformed = getattr(info, "transformed_cell", None) or info.raw_cell
        stored = bool(info.store_history)
        number = self.shell.execution_count - (1 if stored else 0)
        if self.running is not None:
            # Code run from within a cell (`%%capture`, `run_cell`): it belongs to that cell.
            owner, body = self.running, info.raw_cell
            is_body = owner.source.lstrip().startswith("%%") and body.strip() in owner.source
            owner.files.setdefault(self._file_name(body, transformed, number), 1 if is_body else 0)
            self._running.append(None)
            return
        execution = self._append(number if stored else None, info.raw_cell, transformed)
        metadata = getattr(info, "cell_meta", None) or parent_metadata(self.shell)
        execution.front_end.cell_id = getattr(info, "cell_id", None) or metadata.get("cellId")
        execution.front_end.tags |= frozenset(metadata.get("tags") or ())
        self._running.append(execution)
        execution.seen.effects = self._watch.begin(self.shell.user_ns, self.shell.user_ns_hidden, info.raw_cell)
        execution.seen.streams = current_streams()
        self._trainings.begin(self.shell.user_ns)
        execution.seen.paths = self._outside.begin()
        self._imported, self._elsewhere = first_imports.seconds, spent()
        execution.time.started, execution.time.clock = time.time(), time.perf_counter()

    def _observe(self, execution: LoggedExecution, *, ended: bool = False) -> None:
        """Note what the running execution has done until now; what a training call did to values does not count."""
        before = execution.seen.effects
        if before is None:
            return
        seen = self._watch.end(self.shell.user_ns, self.shell.user_ns_hidden, execution.source)
        seen = seen._replace(process=seen.process | self._outside.settings())
        calls = [call for call in self.calls if call.running == execution.index and call.kind != "init"]
        if calls:
            seen = seen._replace(process=frozenset())
        if calls and not (ended and all(map(submitted.was_submitted, calls))):
            seen = seen._replace(changed=frozenset(), unclear=frozenset())
        execution.seen.effects = before.then(seen)

    def before_loading(self) -> None:
        """Look before the result of a training is put in place: what the running cell has done until now is its own."""
        if self.running is not None:
            self._observe(self.running)

    def note_loaded(self, index: int) -> None:
        """Note what the training of an execution has come to: all that has changed since :meth:`before_loading`."""
        trained = self.executions[index]
        seen = self._watch.renew(self.shell.user_ns, self.shell.user_ns_hidden)
        if trained.seen.effects is not None:
            trained.seen.effects = trained.seen.effects.then(seen)

    def before_call(self) -> None:
        """Look before a training call: what it changes is no work of its cell."""
        if self.running is not None:
            self._observe(self.running)
            if self.running.seen.paths is not None:
                self.running.seen.paths.end()

    def _after(self, result: Any) -> None:
        from det_native.heap.unknown_argument import argument_advice

        execution = self._running.pop() if self._running else None
        if execution is None:
            return
        self._running.clear()
        if execution.time.clock is not None:
            execution.time.duration = time.perf_counter() - execution.time.clock
            execution.time.importing = first_imports.seconds - self._imported
            execution.time.elsewhere = spent() - self._elsewhere
        execution.ending.succeeded = bool(result is not None and result.success)
        if execution.seen.effects is not None:
            self._observe(execution, ended=True)
        execution.seen.outside, execution.seen.drew = self._outside.end(), self._outside.drew
        execution.seen.trained = self._trainings.end(self.shell.user_ns)
        if execution.seen.streams is not None and not _have_moved(execution.seen.streams):
            execution.seen.streams = None
        if execution.ending.succeeded or result is None:
            return
        error, ran = result.error_in_exec, result.error_before_exec is None
        line, in_body = top_line(error, execution.files, execution.source) if error is not None else (None, False)
        interrupted = isinstance(error, KeyboardInterrupt)
        execution.ending = Ending(False, True, ran, line, in_body, is_own(error), interrupted)
        if (advice := argument_advice(error)) is not None:
            print(advice, file=sys.stderr)  # beneath the traceback


def _have_moved(before: dict[str, Any]) -> bool:
    """Whether a stream is not where it was."""
    now = current_streams()
    return any(now.get(name) != state for name, state in before.items())


def comment_tags(source: str) -> frozenset[str]:
    """Return the tags that the first line of a cell gives it (``# det-skip``)."""
    first = next((line for line in source.splitlines() if line.strip()), "")
    match = _TAG.match(first)
    return frozenset({match[1]}) if match else frozenset()


_log: ExecutionLog | None = None


def install() -> ExecutionLog | None:
    """Start the log of the running IPython shell; does nothing the second time, or outside IPython.

    Returns
    -------
    ExecutionLog or None
        The log, None if no IPython is running.
    """
    global _log
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    if shell is None:
        return None
    if _log is None or _log.shell is not shell:
        log = ExecutionLog(shell)
        log.attach()
        _log = log
    return _log


def current_log() -> ExecutionLog | None:
    """Return the log of the running shell (see :func:`install`)."""
    return install()


def running_execution() -> int | None:
    """Return the index of the execution that is running: what ``init()`` remembers of where it was called."""
    log = current_log()
    running = log.running if log is not None else None
    return running.index if running is not None else None
