"""Where this process shows things: in a notebook, or not. IPython is not imported for the question."""

from __future__ import annotations

import os
import sys
from typing import Any


def running_shell() -> Any:
    """Return the IPython shell that runs here, None without one."""
    ipython = sys.modules.get("IPython")
    return None if ipython is None else ipython.get_ipython()


def in_notebook() -> bool:
    """Return whether an IPython kernel with a front end runs here."""
    return hasattr(running_shell(), "kernel")


def ends_with_notebook() -> bool:
    """Return whether this kernel belongs to a run of a whole notebook: nothing is shown after the last cell."""
    return bool(os.environ.get("DET_NOTEBOOK_RUN"))
