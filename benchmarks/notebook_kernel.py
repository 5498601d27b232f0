"""A kernel as a notebook has it, for what is measured from a cell on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from jupyter_client.blocking.client import BlockingKernelClient
from jupyter_client.manager import KernelManager

#: Seconds for a cell, less than a row has.
_LIMIT = 240


class Kernel:
    """A notebook kernel that runs cells and gives back the value of an expression."""

    def __init__(self, client: BlockingKernelClient, interrupt: Callable[[], None]) -> None:
        self._client = client
        self._interrupt = interrupt

    def run(self, source: str, expression: str = "None") -> str:
        """Run a cell; return the repr of `expression` afterwards. A cell that hangs is interrupted for the next one."""
        try:
            reply = self._client.execute_interactive(
                source,
                user_expressions={"value": expression},
                output_hook=lambda message: None,
                timeout=_LIMIT,
                stop_on_error=False,
            )
        except BaseException:
            self._interrupt()
            raise
        content = reply["content"]
        assert content["status"] == "ok", "\n".join(content["traceback"])
        return str(content["user_expressions"]["value"]["data"]["text/plain"])


@contextmanager
def running_kernel(folder: Path) -> Iterator[Kernel]:
    """Run a kernel in a folder for the block."""
    manager = KernelManager(kernel_name="python3")
    manager.start_kernel(cwd=str(folder))
    client = manager.blocking_client()
    client.start_channels()
    client.wait_for_ready(timeout=60)
    try:
        yield Kernel(client, manager.interrupt_kernel)
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
