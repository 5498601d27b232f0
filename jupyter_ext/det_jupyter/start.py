"""Starting the master of this machine without holding up the Jupyter server."""

from __future__ import annotations

import threading

from det_native.client.starting import ensure_master
from det_native.errors import DetError
from det_native.schema.home import Home


class Starter:
    """Starts a master in a thread; whoever asks meanwhile starts no second one."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._failure: str | None = None

    @property
    def running(self) -> bool:
        """Whether a start is under way."""
        thread = self._thread
        return thread is not None and thread.is_alive()

    @property
    def failure(self) -> str | None:
        """Why the last start failed; None if it did not, or there was none."""
        return self._failure

    def forget_failure(self) -> None:
        """Say no more that a start failed: a master runs."""
        self._failure = None

    def start(self, home: Home) -> None:
        """Begin to start the master of a home; without effect while that is being done."""
        with self._lock:
            if self.running:
                return
            self._failure = None
            # A daemon: a Jupyter server that is stopped meanwhile does not wait for it.
            self._thread = threading.Thread(target=self._start, args=(home,), name="det-start-master", daemon=True)
            self._thread.start()

    def _start(self, home: Home) -> None:
        try:
            ensure_master(home)
        except DetError as error:
            self._failure = str(error)
        except OSError as error:
            self._failure = f"The master could not be started: {error}."
