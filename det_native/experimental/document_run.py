"""Runs the cells above a document's call, in this process, as far as the call, which then submits itself."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from det_native.capture.calls import cell_line
from det_native.capture.document import Document
from det_native.capture.log import CallRecord, ExecutionLog, install
from det_native.capture.sites import site_in_cells
from det_native.capture.transform import transform
from det_native.client.handles import Experiment
from det_native.errors import CaptureError, DetError, Problem
from det_native.experimental.document_place import AsWritten, Submission, answer
from det_native.experimental.document_request import Request
from det_native.experimental.scheduled import Scheduled
from det_native.schema.manifests import CallSite

HEADLINE = "The cells above the call were run first, in a process of their own, and that failed:"
_SHOWN_BYTES = 4000


def run_document(document: Document, request: Request, folder: Path) -> Experiment:
    """Run the cells of a document as far as its call, and return the experiment that it created.

    Parameters
    ----------
    document : Document
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
    runner = _Runner(document, folder)
    submission = Submission(request.test, request.slots, request.idempotency_key, wanted=runner.is_the_call)
    answer(submission)
    try:
        runner.run(submission)
    finally:
        answer(AsWritten())
    experiment: Experiment = submission.experiment
    return experiment


class _Runner:
    def __init__(self, document: Document, folder: Path) -> None:
        self.document, self.folder = document, folder
        self.shell = _shell()
        log = install()
        assert log is not None, "the shell runs in this process"
        self.log: ExecutionLog = log
        log.prompts = self.document.prompts

    def run(self, submission: Submission) -> None:
        from IPython.core.error import UsageError

        with _kept_output() as output:
            for index in self.document.above:
                self._progress(index)
                result = self._run_cell(index)
                if submission.experiment is not None:
                    return
                error = result.error_before_exec or result.error_in_exec
                if isinstance(error, Scheduled):
                    raise error
                if error is not None and not isinstance(error, UsageError):  # a magic that this shell lacks
                    self._failed(index, error, output())
            raise CaptureError(HEADLINE, [self._not_reached()])

    def is_the_call(self, record: CallRecord) -> bool:
        """Whether a call that the cells make is the one that is sent."""
        kind, above = self.document.call.kind, self.document.above
        wanted = self.document.site(self.document.call, above)
        ran = range(min(len(above), len(self.log.executions)))
        site = site_in_cells(kind, record, self.log, ran, [self.folder]) if record.kind == kind else None
        return site is not None and wanted is not None and _anywhere(site) == _anywhere(wanted)

    def _run_cell(self, index: int) -> Any:
        cell = self.document.cells[index]
        self.shell.execution_count = self.document.number(index)
        metadata = {"cellId": cell.id, "tags": sorted(cell.tags)}
        self.shell.get_parent = lambda: {"metadata": metadata}
        return self.shell.run_cell(cell.source, store_history=True, cell_id=cell.id)

    def _progress(self, index: int) -> None:
        print(f"Running {self.document.within(index)} ...", file=_real_stderr(), flush=True)

    def _failed(self, index: int, error: BaseException, output: str) -> None:
        if isinstance(error, DetError):
            raise error
        execution = self.log.executions[-1]
        where = self.document.label(index)
        line = getattr(error, "lineno", None) if isinstance(error, SyntaxError) else execution.ending.error_line
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
            self.document.label(call.running), f"the cells ran, but {self.document.title()} was not made.", remedy
        )


def _anywhere(site: CallSite) -> CallSite:
    """Return a site without the line that runs: a call in a function is the same by whatever line it is made."""
    return site.model_copy(update={"running_line": None})


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
