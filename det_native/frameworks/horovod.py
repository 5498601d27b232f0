"""Horovod, which averages gradients for several frameworks: whether it is there, and how to get it."""

from __future__ import annotations

import shlex
import sys
from importlib.util import find_spec
from pathlib import Path

from det_native.errors import MissingDependencyError

# What Horovod calls its parts, and what they are for.
_PARTS = {"torch": "PyTorch", "tensorflow": "TensorFlow"}


def has_horovod(part: str = "torch") -> bool:
    """Whether Horovod is installed, with its part for PyTorch or ``"tensorflow"``; nothing is imported."""
    spec = find_spec("horovod")
    folders = (spec.submodule_search_locations if spec is not None else None) or ()
    return any(True for folder in folders for _ in Path(folder, part).glob("mpi_lib*.so"))


def missing_horovod(python: str = sys.executable, part: str = "torch") -> MissingDependencyError:
    """Return the error that says how to install Horovod: there is no wheel of it, a script of ours builds one.

    Parameters
    ----------
    python : str
        Path of the interpreter that lacks it.
    part : {"torch", "tensorflow"}
        Which of its parts is needed.
    """
    environment = Path(python).parents[1]
    installed = environment / "share" / "det_native" / "horovod.sh"
    script = installed if installed.is_file() else Path(__file__).parents[2] / "tools" / "horovod.sh"
    return MissingDependencyError(
        f"distributed.backend: horovod needs Horovod, built for {_PARTS[part]}, which is not installed in "
        f"the Python that trains ({python}): run  VENV={shlex.quote(str(environment))} sh {shlex.quote(str(script))}  "
        f"(there is no wheel; it builds one, in some 6 minutes), or leave the field out: "
        "gradients are exchanged without it."
    )
