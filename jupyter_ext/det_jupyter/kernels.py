"""The interpreter behind a kernelspec: what the notebook's own cells would run in."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from string import Template
from typing import Any

from jupyter_client.kernelspec import NoSuchKernel
from jupyter_core.utils import ensure_async

from det_native._version import __version__
from det_native.errors import Problem, ProblemsError

HEADLINE = "det_native cannot look at this notebook."

# What jupyter_client replaces by its own interpreter.
_ANY_PYTHON = {"python", f"python{sys.version_info[0]}", f"python{sys.version_info[0]}.{sys.version_info[1]}"}
_PYTHON = re.compile(r"(python|pypy)[0-9.]*w?(\.exe)?", re.IGNORECASE)


@dataclass(frozen=True)
class Interpreter:
    """A Python, and what its kernelspec adds to the environment."""

    kernelspec: str
    executable: str
    environment: dict[str, str] = field(default_factory=dict)

    def install_command(self) -> str:
        """Return what installs this version of det_native there."""
        return f"{self.executable} -m pip install det-native=={__version__}"


async def find_interpreter(manager: Any, kernelspec: str) -> Interpreter:
    """Return the interpreter of a kernelspec.

    Parameters
    ----------
    manager : jupyter_client.kernelspec.KernelSpecManager
        Or another with its methods, asynchronous or not.
    kernelspec : str
        Its name, as the notebook has it.

    Raises
    ------
    ProblemsError
        If there is none of this name, or it does not run Python directly.
    """
    where = f"kernel {kernelspec!r}"
    try:
        spec = await ensure_async(manager.get_kernel_spec(kernelspec))
    except (NoSuchKernel, ValueError) as error:  # ValueError: a name that no kernelspec can have
        specs = await ensure_async(manager.get_all_specs())
        usable = ", ".join(sorted({_shown_name(*each) for each in specs.items() if _is_python(each[1]["spec"])}))
        remedy = f"Choose one for the notebook: {usable}." if usable else "Install one: python -m ipykernel install."
        problem = Problem(where, "is not installed on this Jupyter server.", remedy)
        raise ProblemsError(HEADLINE, [problem]) from error
    if not _is_python(spec.to_dict()):
        raise ProblemsError(
            HEADLINE,
            [Problem(where, "is not started by a Python interpreter.", "Choose a Python kernel for the notebook.")],
        )
    executable = sys.executable if spec.argv[0] in _ANY_PYTHON else shutil.which(spec.argv[0])
    if executable is None:
        raise ProblemsError(
            HEADLINE, [Problem(where, f"names {spec.argv[0]}, which is not there.", "Install the kernel again.")]
        )
    added = {str(name): Template(str(value)).safe_substitute(os.environ) for name, value in (spec.env or {}).items()}
    return Interpreter(kernelspec, executable, added)


def _shown_name(name: str, known: Mapping[str, Any]) -> str:
    """Return what JupyterLab calls a kernelspec where it lets the user choose one."""
    return str(known["spec"].get("display_name") or name)


def _is_python(spec: Mapping[str, Any]) -> bool:
    """Tell whether a kernelspec's own command is a Python interpreter."""
    argv = spec.get("argv") or [""]
    return str(spec.get("language")).lower() == "python" and bool(_PYTHON.fullmatch(Path(str(argv[0])).name))
