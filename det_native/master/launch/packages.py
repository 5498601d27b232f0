"""What the Python has that runs the workers, read again once something was installed there."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Sequence

from pydantic import ValidationError

from det_native.errors import RequestError
from det_native.schema.packages import Installed, modules_here, read_installed, stamp

_SECONDS = 60.0


class WorkerPackages:
    """Remembers what interpreters have, by their path. Threads may share it."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[Installed, object]] = {}
        self._lock = threading.Lock()

    def modules(self, executable: str, names: Sequence[str]) -> tuple[Installed, dict[str, dict[str, str]]]:
        """Return what an interpreter is, and those of `names` that it can import, with their distributions.

        Parameters
        ----------
        executable : str
            Empty for the one of this process.

        Raises
        ------
        RequestError
            If it does not answer.
        """
        if executable in ("", sys.executable):
            with self._lock:
                known = self._standing(sys.executable)
                if known is None:
                    known = read_installed()
                    self._known[sys.executable] = known, stamp(known.paths)
            return known, modules_here(known, names)
        with self._lock:
            known = self._standing(executable)
            if known is None or any(name not in known.modules for name in names):
                known = _asked(executable, names)
                self._known[executable] = known, stamp(known.paths)
        return known, {name: known.modules[name] for name in names if name in known.modules}

    def _standing(self, executable: str) -> Installed | None:
        known, then = self._known.get(executable, (None, None))
        return known if known is not None and stamp(known.paths) == then else None


def _asked(executable: str, names: Sequence[str]) -> Installed:
    command = [executable, "-P", "-m", "det_native.schema.packages", *names]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONHOME"}
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_SECONDS, check=False, env=environment, cwd="/"
        )
        return Installed.model_validate_json(done.stdout)
    except (OSError, subprocess.TimeoutExpired, ValidationError) as error:
        raise RequestError(409, f"The interpreter {executable} of the workers does not tell what it has.") from error
