"""Telling kernels, the command line and Jupyter where this master is."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Sequence
from datetime import UTC, datetime

from det_native._version import PROTOCOL, __version__
from det_native.schema.home import Home, RuntimeFile, read_runtime
from det_native.schema.launchers import LOCAL
from det_native.schema.private_files import write_private
from det_native.schema.processes import start_mark
from det_native.schema.start_settings import BUDGET, PLAIN

logger = logging.getLogger(__name__)


def announce(
    home: Home,
    url: str,
    tcp: str | None = None,
    storage: str = "",
    launcher: str = LOCAL,
    options: Sequence[str] = (),
) -> RuntimeFile:
    """Write ``runtime.json`` for this process: where it listens and stores, and how it was started."""
    runtime = RuntimeFile(
        url=url,
        tcp=tcp,
        storage=storage,
        launcher=launcher,
        options=list(options),
        settings={name: os.environ[name] for name in sorted(PLAIN - {BUDGET}) if os.environ.get(name)},
        pid=os.getpid(),
        start=start_mark(os.getpid()) or "",
        version=__version__,
        protocol=PROTOCOL,
        python=sys.executable,
        started=datetime.now(UTC).isoformat(timespec="seconds"),
    )
    _write(home, runtime)
    return runtime


def keep(home: Home, runtime: RuntimeFile) -> None:
    """Write ``runtime.json`` again if it was removed: nobody would find this master, nor be able to start another."""
    if not home.runtime.exists():
        logger.warning("runtime.json was removed: it is written again")
        _write(home, runtime)


def _write(home: Home, runtime: RuntimeFile) -> None:
    write_private(home.runtime, runtime.model_dump_json(indent=2) + "\n")


def withdraw(home: Home) -> None:
    """Remove ``runtime.json`` at a clean stop, unless it is another master's: of a home made anew in the same place."""
    running = read_runtime(home)
    if running is None or running.pid == os.getpid():
        home.runtime.unlink(missing_ok=True)


def last_port(home: Home) -> int:
    """Return the port of the last start, 0 if there was none."""
    try:
        return int(home.port.read_text(encoding="ascii"))
    except (FileNotFoundError, ValueError):
        return 0


def remember_port(home: Home, port: int) -> None:
    """Note the port for the next start."""
    write_private(home.port, f"{port}\n")
