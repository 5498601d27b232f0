"""The training frameworks: what each is called, and one sentence for the one that is not installed."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from det_native.errors import MissingDependencyError


@dataclass(frozen=True)
class Framework:
    """A framework: the module it is imported as, its title, and our extra that installs it."""

    module: str
    title: str
    extra: str


FRAMEWORKS = {
    "tensorflow": Framework("tensorflow", "TensorFlow", "keras"),
    "torch": Framework("torch", "PyTorch", "torch"),
}


def missing(framework: Framework, user: str) -> MissingDependencyError:
    """Return the error that says what `user` needs and how to install it."""
    return MissingDependencyError(
        f"{user} needs {framework.title}, which is not installed in this Python: "
        f'run  pip install "det-native[{framework.extra}]"'
    )


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
    script = installed if installed.is_file() else Path(__file__).parents[1] / "tools" / "horovod.sh"
    other = ", or leave the field out: torch exchanges gradients by itself" if part == "torch" else ""
    return MissingDependencyError(
        f"distributed.backend: horovod needs Horovod, built for {FRAMEWORKS[part].title}, which is not installed in "
        f"the Python that trains ({python}): run  VENV={shlex.quote(str(environment))} sh {shlex.quote(str(script))}  "
        f"(there is no wheel; it builds one, in some 6 minutes){other}."
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
        framework = FRAMEWORKS.get((error.name or "").partition(".")[0])
        if framework is None:
            raise
        raise missing(framework, user) from None
