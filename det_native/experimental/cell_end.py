"""What is done when the cell that runs, or the script, has come to its end."""

from __future__ import annotations

import atexit
import sys
import threading
from collections.abc import Callable
from typing import Any


def at_the_end(do: Callable[[], None]) -> None:
    """Call a function when the cell that runs, or else the script, is at its end, after an exception too."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    if shell is None:
        # Where concurrent.futures registers itself too: with atexit it would be too late to write a checkpoint.
        register: Callable[[Callable[[], None]], object] = getattr(threading, "_register_atexit", atexit.register)
        register(do)
        return

    def cell_ran(result: Any) -> None:
        shell.events.unregister("post_run_cell", cell_ran)
        do()

    shell.events.register("post_run_cell", cell_ran)
