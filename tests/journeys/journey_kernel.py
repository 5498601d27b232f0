"""A real kernel that is typed into as a front end does it, and that keeps what a saved notebook would hold."""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

import nbformat
from jupyter_client.blocking.client import BlockingKernelClient
from jupyter_client.manager import KernelManager

Script = Callable[..., "subprocess.CompletedProcess[str]"]

_COLOURS = re.compile(r"\x1b\[[0-9;]*m")


@dataclass
class Ran:
    """One executed cell: what the user sees under it."""

    source: str
    outputs: list[Any] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def stdout(self) -> str:
        """All that was printed."""
        return "".join(output["text"] for output in self.outputs if output.get("name") == "stdout")

    @property
    def stderr(self) -> str:
        """Warnings, and whatever else went to standard error."""
        return "".join(output["text"] for output in self.outputs if output.get("name") == "stderr")

    @property
    def error(self) -> str:
        """Type and message of the exception that the cell raised; empty if none."""
        for output in self.outputs:
            if output["output_type"] == "error":
                return f"{output['ename']}: {output['evalue']}"
        return ""

    @property
    def traceback(self) -> str:
        """The traceback under the cell, without its colours."""
        for output in self.outputs:
            if output["output_type"] == "error":
                return _COLOURS.sub("", "\n".join(output["traceback"]))
        return ""

    @property
    def shown(self) -> list[dict[str, Any]]:
        """Display data and results, each by MIME type."""
        return [
            output["data"] for output in self.outputs if output["output_type"] in ("display_data", "execute_result")
        ]

    @property
    def text(self) -> str:
        """Everything, as text, in order."""
        parts = []
        for output in self.outputs:
            if output["output_type"] == "stream":
                parts.append(output["text"])
            elif output["output_type"] == "error":
                parts.append(f"{output['ename']}: {output['evalue']}\n")
            else:
                parts.append(f"{output['data'].get('text/plain', '')}\n")
        return "".join(parts)


class Notebook:
    """A notebook under execution: one kernel, its cells in the order in which they were run.

    Parameters
    ----------
    folder : Path
        The notebook's folder: the kernel's working directory.
    environment : dict
        The kernel's environment variables.
    """

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self.folder = folder
        self.cells: list[Ran] = []
        self._manager = KernelManager(kernel_name="python3")
        self._manager.start_kernel(cwd=str(folder), env=environment)
        self._client: BlockingKernelClient = self._manager.blocking_client()
        self._client.start_channels()
        self._client.wait_for_ready(timeout=240)
        self._displays: dict[str, list[Any]] = {}

    def close(self) -> None:
        """End the kernel."""
        self._client.stop_channels()
        self._manager.shutdown_kernel(now=True)
        self._manager.cleanup_resources()

    def interrupt(self) -> None:
        """Press the stop button: SIGINT to the kernel."""
        self._manager.interrupt_kernel()

    def begin(self, source: str) -> None:
        """Run a cell whose end nobody waits for."""
        self._client.execute(source)

    def restart(self) -> None:
        """Press the restart button, whatever runs."""
        self._manager.restart_kernel(now=True)
        self._client.wait_for_ready(timeout=240)

    def run(
        self,
        source: str,
        *,
        cell: str | None = None,
        watch: Callable[[str], None] | None = None,
        fails: bool = False,
    ) -> Ran:
        """Run a cell.

        Parameters
        ----------
        source : str
        cell : str, optional
            Identity of the cell; a new cell by default.
        watch : callable, optional
            Is given the text of each output as it appears, while the cell runs.
        fails : bool
            The cell is expected to raise; otherwise an exception fails the test, with all that the cell showed.
        """
        ran = Ran(source)
        self.cells.append(ran)
        message = self._client.session.msg(
            "execute_request",
            {
                "code": source,
                "silent": False,
                "store_history": True,
                "user_expressions": {},
                "allow_stdin": False,
                "stop_on_error": False,
            },
            metadata={"cellId": cell or uuid4().hex, "deletedCells": []},
        )
        started = time.perf_counter()
        self._client.shell_channel.send(message)
        self._collect(ran, message["header"]["msg_id"], watch)
        self._client.get_shell_msg(timeout=240)
        ran.seconds = time.perf_counter() - started
        assert bool(ran.error) == fails, f"{source}\n{'-' * 40}\n{ran.text}\n{ran.traceback}"
        return ran

    def document(self) -> nbformat.NotebookNode:
        """Return the notebook as it would be saved now."""
        cells = [
            nbformat.v4.new_code_cell(ran.source, outputs=[nbformat.from_dict(output) for output in ran.outputs])
            for ran in self.cells
        ]
        document = nbformat.v4.new_notebook(cells=cells)
        nbformat.validate(document)
        return document

    def _collect(self, ran: Ran, parent: str, watch: Callable[[str], None] | None) -> None:
        while True:
            reply = self._client.get_iopub_msg(timeout=240)
            kind, content = reply["msg_type"], reply["content"]
            if reply["parent_header"].get("msg_id") != parent:
                continue
            if kind == "status" and content["execution_state"] == "idle":
                return
            if kind == "stream":
                _append(ran.outputs, content)
            elif kind in ("display_data", "execute_result", "update_display_data"):
                self._show(ran, kind, content)
            elif kind == "error":
                ran.outputs.append({"output_type": "error", **content})
            if watch is not None:
                watch(content.get("text") or content.get("data", {}).get("text/plain", ""))

    def _show(self, ran: Ran, kind: str, content: dict[str, Any]) -> None:
        name = content.pop("transient", {}).get("display_id")
        if kind == "update_display_data":
            for output in self._displays.get(name, []):
                output |= {"data": content["data"], "metadata": content["metadata"]}
            return
        output = {"output_type": kind, **content}
        ran.outputs.append(output)
        if name:
            self._displays.setdefault(name, []).append(output)


def _append(outputs: list[Any], content: dict[str, Any]) -> None:
    """Join what is printed to what was printed before, as front ends do."""
    last = outputs[-1] if outputs else {}
    if last.get("output_type") == "stream" and last["name"] == content["name"]:
        last["text"] += content["text"]
    else:
        outputs.append({"output_type": "stream", **content})
