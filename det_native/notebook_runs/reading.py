"""Reading a notebook's file and its kernelspec, before anything runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from det_native.errors import ArgumentError, MissingDependencyError


def read_notebook(path: Path, content: str = "") -> Any:
    """Return a notebook's document (``nbformat.NotebookNode``), of the newest minor version of format 4.

    Parameters
    ----------
    content : str
        What it holds; by default that of the file.

    Raises
    ------
    ArgumentError
        If it cannot be read, or has no code.
    MissingDependencyError
        If nbformat is not installed.
    """
    require_packages()
    import nbformat

    try:
        text = content or path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is not text in UTF-8"
        raise ArgumentError(f"The notebook {path} cannot be read: {why}.") from error
    try:
        content = json.loads(text)
        if not isinstance(content, dict) or not {"cells", "worksheets"} & content.keys():
            raise ValueError("it has no list of cells")
        notebook = nbformat.reads(text, as_version=4)
        nbformat.validate(notebook)
    except Exception as error:  # nbformat raises errors of many kinds
        why = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise ArgumentError(f"{path} is not a notebook of format 4 (.ipynb): {why}.") from error
    if not code_cells(notebook):
        raise ArgumentError(f"The notebook {path} has no code to run.")
    return notebook


def code_cells(notebook: Any) -> list[int]:
    """Return the places of the code cells that are not empty."""
    return [place for place, cell in enumerate(notebook.cells) if cell.cell_type == "code" and cell.source.strip()]


def check_kernel(name: str, manager: Any = None) -> dict[str, Any]:
    """Return a kernelspec that can run a notebook that trains, as ``KernelSpec`` takes it.

    Parameters
    ----------
    manager : KernelSpecManager, optional
        That of a Jupyter server; by default, what is installed on this machine counts.

    Raises
    ------
    ArgumentError
        If it is not installed, or does not run Python.
    """
    require_packages()
    from jupyter_client.kernelspec import KernelSpecManager, NoSuchKernel

    manager = manager or KernelSpecManager()
    try:
        spec = manager.get_kernel_spec(name)
    except (NoSuchKernel, ValueError) as error:
        python = sorted(
            each for each, entry in manager.get_all_specs().items() if entry["spec"].get("language") == "python"
        )
        remedy = f"use one of {', '.join(python)} (--kernel)" if python else "install one: python -m ipykernel install"
        raise ArgumentError(f"Kernel {name!r} is not installed on this machine: {remedy}.") from error
    if str(spec.language).lower() != "python":
        raise ArgumentError(f"Kernel {name!r} runs {spec.language}, and det_native trains from Python kernels.")
    return {"resource_dir": spec.resource_dir, **spec.to_dict()}


def require_packages() -> None:
    """See that notebooks can be run.

    Raises
    ------
    MissingDependencyError
        If nbclient is not installed.
    """
    try:
        import nbclient  # noqa: F401
    except ImportError as error:
        raise MissingDependencyError(
            'Running a notebook needs nbclient and ipykernel: pip install "det-native[lab]".'
        ) from error
