"""A kernel as a notebook has it, for what is measured from a cell on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from jupyter_client.blocking.client import BlockingKernelClient
from jupyter_client.manager import KernelManager


class Kernel:
    """A notebook kernel that runs cells and gives back the value of an expression."""

    def __init__(self, client: BlockingKernelClient) -> None:
        self._client = client

    def run(self, source: str, expression: str = "None") -> str:
        """Run a cell; return the repr of `expression` afterwards."""
        reply = self._client.execute_interactive(
            source, user_expressions={"value": expression}, output_hook=lambda message: None, timeout=600
        )
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
    yield Kernel(client)
    client.stop_channels()
    manager.shutdown_kernel(now=True)
