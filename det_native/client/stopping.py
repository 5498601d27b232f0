"""Stopping the master of this machine."""

from __future__ import annotations

import os
import signal

from det_native.client.home import read_token
from det_native.errors import MasterError
from det_native.schema.home import Home, RuntimeFile
from det_native.schema.processes import is_stopped, wait_until_gone
from det_native.schema.sockets import is_socket

_STOP_SECONDS = 30.0


def stop_master(runtime: RuntimeFile, home: Home, *, kill: bool) -> None:
    """Stop the master of a home, whatever its version.

    Parameters
    ----------
    kill : bool
        Whether to end its workers, too.

    Raises
    ------
    MasterError
        If it does not stop.
    """
    from det_native.client.session import Session
    from det_native.schema import routes

    if is_stopped(runtime.pid):
        raise MasterError(
            f"The master (process {runtime.pid}) is stopped by a signal and cannot end: `kill -CONT {runtime.pid}` "
            f"lets it go on, then `det down` works; `kill -9 {runtime.pid}` ends it as it is, and nothing that it has "
            "acknowledged is lost."
        )
    if kill and not is_socket(runtime.url):
        raise MasterError(
            f"The master (process {runtime.pid}) is version {runtime.version} and listens at a port, where others may "
            "listen too: it is told nothing. `det down` stops it; `det up` and `det down --kill` then end the trials."
        )
    if kill:
        Session(runtime.url, read_token(home) or "").call(routes.SHUT_DOWN, kill=True)
    else:
        os.kill(runtime.pid, signal.SIGTERM)
    if not wait_until_gone(runtime.pid, runtime.start, _STOP_SECONDS):
        raise MasterError(
            f"The master (process {runtime.pid}) has not stopped after {_STOP_SECONDS:.0f} s. `kill -9 {runtime.pid}` "
            "ends it; nothing that it has acknowledged is lost."
        )
