"""Horovod, which averages gradients for several frameworks: whether it is there, and how to get it."""

from __future__ import annotations

import shlex
import sys
from importlib.util import find_spec
from pathlib import Path

from det_native.errors import MissingDependencyError


def has_horovod() -> bool:
    """Whether Horovod is installed, with its part for PyTorch; nothing is imported."""
    spec = find_spec("horovod")
    folders = (spec.submodule_search_locations if spec is not None else None) or ()
    return any(True for folder in folders for _ in Path(folder, "torch").glob("mpi_lib_v2*"))


def missing_horovod(python: str = sys.executable) -> MissingDependencyError:
    """Return the error that says how to install Horovod: there is no wheel of it, a script of ours builds one.

    Parameters
    ----------
    python : str
        Path of the interpreter that lacks it.
    """
    environment = Path(python).parents[1]
    installed = environment / "share" / "det_native" / "horovod.sh"
    script = installed if installed.is_file() else Path(__file__).parents[2] / "tools" / "horovod.sh"
    return MissingDependencyError(
        "distributed.backend: horovod needs Horovod, built for PyTorch, which is not installed in the Python that "
        f"trains ({python}): run  VENV={shlex.quote(str(environment))} sh {shlex.quote(str(script))}  (there is no "
        "wheel; it builds one, in some 6 minutes), or leave the field out: torch exchanges gradients by itself."
    )
