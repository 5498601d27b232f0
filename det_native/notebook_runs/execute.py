"""Executes a run's notebook in a fresh kernel, cell by cell, and keeps the executed notebook as it grows."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import nbformat
import zmq.asyncio
from jupyter_client.asynchronous.client import AsyncKernelClient
from jupyter_client.kernelspec import KernelSpec, NoSuchKernel
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
from nbformat import NotebookNode
from traitlets import default
from traitlets.config import Config

from det_native.client.addresses import named_master
from det_native.errors import ArgumentError, DetError
from det_native.notebook_runs.folders import STOPPED, RunFolder
from det_native.notebook_runs.keeping import keep_executed, save_beside, stop_experiments
from det_native.notebook_runs.reading import code_cells
from det_native.schema.notebook_runs import VARIABLE, NotebookRun, RunRequest, State

#: Seconds between two saves of the executed notebook while a cell runs.
SAVE_SECONDS = 5.0
#: For which the end of a run waits for room on a full disk.
FULL_DISK_SECONDS = 3_600.0
#: For a kernel to leave the cell that it runs, once it is interrupted.
INTERRUPT_SECONDS = 20.0
#: For what a cell has shown to come, once it has ended: a busy machine takes its time for thousands of pictures.
OUTPUT_SECONDS = 600
# Paths of sockets have 108 bytes, with the null byte and what the kernel appends.
_LONGEST_SOCKET = 90
_MOST_OF_ERROR = 2_000
_NO_INPUT = "StdinNotImplementedError"
# For ipykernel: it drops what it shows beyond 1,000 messages that a busy machine has not taken yet.
_SEND_ALL = (
    "(lambda sent: sent.io_thread.schedule("
    "lambda: sent.io_thread.socket.setsockopt(__import__('zmq').SNDHWM, 0)))(get_ipython().kernel.iopub_socket)"
)


def execute(folder: RunFolder) -> int:
    """Execute the notebook of a run's folder; return the exit status, 0 if every cell has run."""
    os.setpgid(0, 0) if os.getpgrp() != os.getpid() else None
    execution = _Execution(folder)
    asyncio.run(execution.execute())
    return 0 if execution.run.state == "COMPLETED" else 1


class _Client(AsyncKernelClient):
    """Takes any number of messages: a cell that shows thousands of things is faster than what is done with each."""

    @default("context")
    def _unlimited_context(self) -> zmq.asyncio.Context:
        context = zmq.asyncio.Context()
        context.setsockopt(zmq.RCVHWM, 0)
        self._created_context = True
        return context


class _StoppedError(Exception):
    """The run was stopped between two cells."""


class _Execution:
    def __init__(self, folder: RunFolder) -> None:
        self.folder = folder
        request = folder.request()
        # What cells set later (DET_MASTER, say) is not what the run was begun with.
        self.request: RunRequest = request.model_copy(update={"master": request.master or named_master() or ""})
        if self.request != request:
            folder.write_request(self.request)
        self.run: NotebookRun = folder.run()
        self.notebook: NotebookNode = nbformat.read(folder.executed, as_version=4)
        self.numbers = {place: number for number, place in enumerate(code_cells(self.notebook), 1)}
        self.stopped_why = ""
        self._interrupting: asyncio.Future[None] | None = None
        self._unsaved_why = ""

    async def execute(self) -> None:
        """Execute the notebook, and keep how that ended."""
        self._take_signals()
        limit = self.request.limit_seconds
        timer = asyncio.get_running_loop().call_later(
            limit, self._stop, f"It ran longer than its limit of {_duration(limit)}."
        )
        saver = asyncio.ensure_future(self._save_again_and_again())
        state: State = "COMPLETED"
        error = ""
        try:
            await self._execute_cells()
        except Exception as failure:  # noqa: BLE001 (its sentence is what the user gets)
            state, error = "FAILED", self._sentence(failure)
        finally:
            self._take_signals()  # nbclient has removed them; what is to be kept now must not be cut off
            timer.cancel()
            saver.cancel()
            if self._interrupting is not None:
                self._interrupting.cancel()
        if state == "FAILED" and (self.stopped_why or self.folder.is_stopping):
            state, error = "STOPPED", self.stopped_why or STOPPED
        await asyncio.to_thread(self._finish, state, error)

    async def _execute_cells(self) -> None:
        path = Path(self.request.path)
        self.client = NotebookClient(
            self.notebook,
            timeout=None,
            iopub_timeout=OUTPUT_SECONDS,
            kernel_name=self.run.kernel,
            config=Config({"KernelManager": self._connection()}),
            allow_errors=False,
            skip_cells_with_tag="",  # as "Run all" of JupyterLab, which skips none
            resources={"metadata": {"path": str(path.parent)}},
            on_cell_start=self._cell_starts,
            on_cell_executed=self._cell_ended,
        )
        self.client.create_kernel_manager()
        if self.request.spec is not None:
            self.client.km._kernel_spec = KernelSpec(**self.request.spec)
        self.client.km.client_factory = _Client
        environment = {**os.environ, VARIABLE: str(self.folder.path), "JPY_SESSION_NAME": str(path)}
        async with self.client.async_setup_kernel(env=environment, cwd=str(path.parent)):
            self._take_signals()  # nbclient has set handlers of its own, which end the kernel at once
            self.client.kc.execute(_SEND_ALL, silent=True, store_history=False)  # another kernel answers with an error
            try:
                for place, cell in enumerate(self.notebook.cells):
                    if self.stopped_why:
                        raise _StoppedError
                    await self.client.async_execute_cell(cell, place)
            finally:
                with suppress(Exception):
                    self.client.set_widgets_metadata()

    def _connection(self) -> dict[str, str]:
        """Return how to reach the kernel: by sockets in the run's folder, which others of this machine cannot open."""
        file = self.folder.path / "kernel.json"
        if len(os.fsencode(file)) > _LONGEST_SOCKET:
            return {}
        return {"transport": "ipc", "connection_file": str(file)}

    def _take_signals(self) -> None:
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, self._stop, STOPPED)

    def _stop(self, why: str) -> None:
        if not self.stopped_why:
            self.stopped_why = why
            self._interrupting = asyncio.ensure_future(self._interrupt())

    async def _interrupt(self) -> None:
        """End the cell that runs: by an interrupt, so that it closes its files; else by the end of its kernel."""
        await asyncio.to_thread(stop_experiments, self.folder)
        with suppress(Exception):  # the kernel may be starting, or gone
            await self.client.km.interrupt_kernel()
        await asyncio.sleep(INTERRUPT_SECONDS)
        with suppress(Exception):
            await self.client.km.shutdown_kernel(now=True)

    def _cell_starts(self, cell: NotebookNode, cell_index: int) -> None:
        number = self.numbers.get(cell_index)
        if number is None:
            return
        # As JupyterLab sends them: by its id the kernel knows a cell, by its tags what det_native does with it.
        tags = list(cell.metadata.get("tags", []))
        self.client.kc.session.metadata = {"cellId": cell.get("id", ""), "tags": tags}
        self._change(state="RUNNING", cell=number)

    def _cell_ended(self, **_: Any) -> None:
        self._save()

    async def _save_again_and_again(self) -> None:
        while True:
            await asyncio.sleep(SAVE_SECONDS)
            self._save()

    def _change(self, **changes: Any) -> None:
        self.run = self.run.model_copy(update=changes)
        with suppress(OSError):  # a full disk: the cells go on, and it is tried with each cell
            self.folder.write(self.run)

    def _save(self) -> None:
        temporary = self.folder.executed.with_suffix(".part")
        try:
            # Without a look whether it is valid: that takes long for many outputs, and the kernel's messages wait.
            temporary.write_text(nbformat.v4.writes(self.notebook), encoding="utf-8")
            os.replace(temporary, self.folder.executed)
            self._unsaved_why = ""
        except OSError as error:
            temporary.unlink(missing_ok=True)
            self._unsaved_why = f"The executed notebook could not be saved: {error.strerror}."

    def _finish(self, state: State, error: str) -> None:
        self._save_patiently()
        self.run = self.run.model_copy(update={"experiments": self.folder.experiment_names()})
        copies = [keep_executed(self.folder)] if self.folder.experiments_by_master() else []
        if self.request.beside:
            copies.append(save_beside(self.folder, self.run))
        notes = [note for note in (self._unsaved_why, *copies) if note]
        self._change(state=state, error=error, notes=notes, kept="" in copies, ended=time.time())

    def _save_patiently(self) -> None:
        """Save the executed notebook; while the disk is full, which somebody may mend, again and again."""
        deadline = time.monotonic() + FULL_DISK_SECONDS
        while True:
            self._save()
            if not self._unsaved_why or self.folder.is_stopping or time.monotonic() > deadline:
                return
            time.sleep(SAVE_SECONDS)

    def _sentence(self, failure: Exception) -> str:
        cell = f"Cell {self.run.cell} of {self.run.cells}"
        if isinstance(failure, CellExecutionError):
            if failure.ename == _NO_INPUT:
                return f"{cell} asks for input, which a run in the background cannot give: use a parameter."
            return f"{cell} raised {failure.ename}: {failure.evalue}"[:_MOST_OF_ERROR]
        if isinstance(failure, DeadKernelError):
            why = f"The kernel ended while cell {self.run.cell} of {self.run.cells} ran: killed, or out of memory?"
            stop = f"det notebook stop {self.run.id}"
            return why + (f" Its experiments go on; `{stop}` stops them." if self.folder.experiment_names() else "")
        if isinstance(failure, CellTimeoutError):
            return f"{cell} did not answer."
        if isinstance(failure, DetError | ArgumentError | NoSuchKernel):
            return str(failure)
        if not self.run.cell:
            return f"The kernel {self.run.kernel!r} does not start: {failure}; the log is {self.folder.log}."
        return f"{cell}: {type(failure).__name__}: {failure}"[:_MOST_OF_ERROR]


def _duration(seconds: float) -> str:
    for unit, length in (("days", 86_400), ("hours", 3_600), ("minutes", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:g} {unit}"
    return f"{seconds:g} seconds"


if __name__ == "__main__":
    sys.exit(execute(RunFolder(Path(sys.argv[1]))))
