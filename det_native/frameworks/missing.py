"""One sentence for a framework that is not installed, and for Horovod."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from det_native.errors import MissingDependencyError
from det_native.frameworks.description import Description
from det_native.frameworks.registry import read_frameworks


def missing(framework: Description, user: str) -> MissingDependencyError:
    """Return the error that says what `user` needs and how to install it."""
    return MissingDependencyError(
        f'{user} needs {framework.title}, which is not installed in this Python: run  pip install "{framework.install}"'
    )


@contextmanager
def translated(user: str) -> Iterator[None]:
    """Turn the ``ModuleNotFoundError`` for a framework inside the block into one sentence with its ``pip install``.

    Parameters
    ----------
    user : str
        What needs the framework, as the user typed it.

    Raises
    ------
    MissingDependencyError
        If a framework is not installed. Other failures of an import pass unchanged.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        # Of a framework that is there, a module may be missing (one that other versions have): that is said as it is.
        framework = next((one for one in read_frameworks() if one.module == error.name), None)
        if framework is None:
            raise
        raise missing(framework, user) from None


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
