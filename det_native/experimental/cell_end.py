"""What is done when the cell that runs, or the script, has come to its end."""

from __future__ import annotations

import atexit
import os
import threading
from collections.abc import Callable
from typing import Any

from det_native.display.environment import running_shell


def at_the_end(do: Callable[[], None]) -> None:
    """Call a function when the cell that runs, or else the script, is at its end, after an exception too.

    The end of a fork of this process (a loader worker, say) is not that of the script.
    """
    shell = running_shell()
    if shell is None:
        process = os.getpid()

        def script_ended() -> None:
            if os.getpid() == process:
                do()

        # Where concurrent.futures registers itself too: with atexit it would be too late to write a checkpoint.
        register: Callable[[Callable[[], None]], object] = getattr(threading, "_register_atexit", atexit.register)
        register(script_ended)
        return

    def cell_ran(result: Any) -> None:
        shell.events.unregister("post_run_cell", cell_ran)
        do()

    shell.events.register("post_run_cell", cell_ran)
