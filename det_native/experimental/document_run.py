"""Runs the cells that a document's call needs, in this process, as far as the call, which then submits itself."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from det_native.capture.calls import cell_line
from det_native.capture.document import Document, call_title
from det_native.capture.log import CallRecord, ExecutionLog, install
from det_native.capture.sites import site_in_cells
from det_native.capture.transform import transform
from det_native.client.handles import Experiment
from det_native.errors import CaptureError, DetError, Problem
from det_native.experimental.document_place import Submission, submit_only
from det_native.experimental.document_request import Request

HEADLINE = "The cells that the call needs were run first, in a process of their own, and that failed:"
_SHOWN_BYTES = 4000


def run_document(document: Document, included: Sequence[int], request: Request, folder: Path) -> Experiment:
    """Run the cells of a document as far as its call, and return the experiment that it created.

    Parameters
    ----------
    document : Document
    included : sequence of int
        Indices of the cells that the call needs, in order.
    request : Request
    folder : Path
        The notebook's folder.

    Raises
    ------
    CaptureError
        If a cell fails, or the call is not reached.
    DetError
        Whatever the call refuses.
    """
    runner = _Runner(document, included, folder)
    submission = Submission(runner.is_the_call, request.test, request.slots, request.idempotency_key)
    submit_only(submission)
    try:
        runner.run(submission)
    finally:
        submit_only(None)
    experiment: Experiment = submission.experiment
    return experiment


class _Runner:
    def __init__(self, document: Document, included: Sequence[int], folder: Path) -> None:
        self.document, self.included, self.folder = document, list(included), folder
        self.shell = _shell()
        log = install()
        assert log is not None, "the shell runs in this process"
        self.log: ExecutionLog = log
        log.prompts = self.document.log.prompts

    def run(self, submission: Submission) -> None:
        with _kept_output() as output:
            for index in self.included:
                self._progress(index)
                result = self._run_cell(index)
                if submission.experiment is not None:
                    return
                error = result.error_before_exec or result.error_in_exec
                if error is not None:
                    self._failed(index, error, output())
            raise CaptureError(HEADLINE, [self._not_reached()])

    def is_the_call(self, record: CallRecord) -> bool:
        """Whether a call that the cells make is the one that is sent."""
        wanted = self.document.call
        site = site_in_cells(wanted.kind, record, self.log, range(len(self.log.executions)), [self.folder])
        if site is None or record.kind != wanted.kind or site.cell is None or site.running is None:
            return False
        expected = site_in_cells(wanted.kind, self.document.record, self.document.log, self._indices(), [self.folder])
        return (
            expected is not None
            and (site.line, site.column) == (expected.line, expected.column)
            and self.included[site.cell] == wanted.owner
            and self.included[site.running] == wanted.running
            and site.occurrence == wanted.occurrence
        )

    def _indices(self) -> range:
        return range(len(self.document.log.executions))

    def _run_cell(self, index: int) -> Any:
        cell, logged = self.document.log.cells[index], self.document.log.executions[index]
        self.shell.execution_count = logged.number
        metadata = {"cellId": cell.id, "tags": sorted(cell.tags)}
        self.shell.get_parent = lambda: {"metadata": metadata}
        return self.shell.run_cell(cell.source, store_history=True, cell_id=cell.id)

    def _progress(self, index: int) -> None:
        label = self.document.label(index)
        print(f"Running {label[0].lower()}{label[1:]} ...", file=_real_stderr(), flush=True)

    def _failed(self, index: int, error: BaseException, output: str) -> None:
        if isinstance(error, DetError):
            raise error
        execution = self.log.executions[-1]
        where = self.document.label(index)
        line = getattr(error, "lineno", None) if isinstance(error, SyntaxError) else execution.error_line
        if line is not None:
            lines = transform(execution.source).kernel_lines
            body = max(execution.files.values(), default=0) > 0
            where += f", line {cell_line(lines, execution.source, line, body)}"
        what = f"{type(error).__name__}: {error}"
        if output:
            what += f"\nThe end of what the cells printed:\n{output}"
        raise CaptureError(HEADLINE, [Problem(where, what, "")]) from None

    def _not_reached(self) -> Problem:
        call = self.document.call
        remedy = "Does it depend on a condition, or on a value that only the notebook's kernel has?"
        if call.kind == "train":
            remedy += " A loop over context.train() has to stand in the cell of that call, or run in the kernel."
        return Problem(
            self.document.label(call.running), f"the cells ran, but {call_title(self.document)} was not made.", remedy
        )


def _shell() -> Any:
    """Return an IPython shell that takes what notebooks do, without history file, colours or windows."""
    os.environ.setdefault("MPLBACKEND", "Agg")
    from IPython.core.interactiveshell import InteractiveShell
    from traitlets.config import Config

    config = Config()
    config.HistoryManager.enabled = False
    config.InteractiveShell.colors = "NoColor"
    shell: Any = InteractiveShell.instance(config=config)
    shell.enable_gui = lambda gui=None: None  # there is no window
    shell.user_module.__name__ = "__main__"
    sys.modules["__main__"] = shell.user_module
    return shell


_saved_stderr: Any = None


def _real_stderr() -> Any:
    return _saved_stderr or sys.stderr


@contextmanager
def _kept_output() -> Iterator[Any]:
    """Keep what the cells print, and what their processes do, to itself; the value gives the end of it."""
    global _saved_stderr
    sys.stdout.flush()
    sys.stderr.flush()
    with tempfile.TemporaryFile() as kept:

        def end() -> str:
            sys.stdout.flush()
            sys.stderr.flush()
            size = kept.seek(0, os.SEEK_END)
            kept.seek(max(0, size - _SHOWN_BYTES))
            return kept.read().decode("utf-8", "replace").strip()

        saved = os.dup(1), os.dup(2)
        os.dup2(kept.fileno(), 1)
        os.dup2(kept.fileno(), 2)
        _saved_stderr = os.fdopen(os.dup(saved[1]), "w")
        try:
            yield end
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os.dup2(saved[0], 1)
            os.dup2(saved[1], 2)
            for descriptor in saved:
                os.close(descriptor)
            _saved_stderr.close()
            _saved_stderr = None
