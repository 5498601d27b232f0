"""Programs of ours in processes of their own, which end with the request that they are for."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

_GRACE_SECONDS = 2.0


class Finished(NamedTuple):
    """What a program left: its exit status, what it wrote to stdout, and to stderr."""

    code: int
    answered: bytes
    said: str


async def run_program(
    command: Sequence[str],
    body: bytes = b"",
    *,
    seconds: float,
    folder: Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> Finished:
    """Run a program with `body` as its input.

    Cancelled, or after `seconds`, the process and what it has started in its group are ended.

    Parameters
    ----------
    folder : Path, optional
        Where it runs; default the server's folder.
    environment : mapping, optional
        Variables besides the server's.

    Raises
    ------
    OSError
        If it does not start.
    TimeoutError
        If it takes longer than `seconds`.
    """
    # Starting is not broken off: what asyncio ends then is the process alone, not what it has started itself.
    starting = asyncio.create_task(_start(command, folder, environment or {}))
    try:
        async with asyncio.timeout(seconds):
            process = await asyncio.shield(starting)
            answered, said = await process.communicate(body)
    finally:
        await _end(await starting)
    return Finished(process.returncode or 0, answered, said.decode(errors="replace"))


async def _start(
    command: Sequence[str], folder: Path | None, environment: Mapping[str, str]
) -> asyncio.subprocess.Process:
    pipe = asyncio.subprocess.PIPE
    return await asyncio.create_subprocess_exec(
        *command,
        stdin=pipe,
        stdout=pipe,
        stderr=pipe,
        cwd=folder,
        env=os.environ | environment,
        start_new_session=True,
    )


async def _end(process: asyncio.subprocess.Process) -> None:
    """End the process and its group, if it has not ended; a master that it has started is in a group of its own."""
    if process.returncode is not None:
        return
    _signal(process, signal.SIGTERM)
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_GRACE_SECONDS):
            await process.wait()
    # Also when it has ended: what it started may not have listened.
    _signal(process, getattr(signal, "SIGKILL", signal.SIGTERM))
    await process.wait()


def _signal(process: asyncio.subprocess.Process, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, number)
        else:
            process.terminate()
