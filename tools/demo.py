"""Run the quickstart notebook headless, as a user would, and say what came out.

Saves the executed notebook and the figure under ``build/demo/``, prints a table of what ran with accuracies and times,
and exits with 1 if a validation accuracy is under 0.95 or a figure is missing.
"""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOK = ROOT / "notebooks" / "01_quickstart.ipynb"
OUTPUT = ROOT / "build" / "demo"
REQUIRED_ACCURACY = 0.95

# What ran, the variable of the notebook that holds its validation accuracy, and a piece of the cell that ran it.
PARTS = [
    ("Keras, in the kernel", "local_accuracy", "local_accuracy ="),
    ("Keras, on the cluster", "cluster_accuracy", "experiment.wait()"),
    ("PyTorchTrial, grid of 2 on the cluster", "torch_accuracy", "torch_experiment.wait()"),
    ("Keras model, trained on the cluster", "loaded_accuracy", "loaded_accuracy ="),
]


@dataclass
class Result:
    """One line of the table."""

    part: str
    accuracy: float
    seconds: float


def execute(notebook: nbformat.NotebookNode) -> tuple[dict[str, float], dict[int, float]]:
    """Execute all cells; return the accuracies by variable and the seconds by index of cell."""
    client = NotebookClient(
        notebook, timeout=600, kernel_name="python3", resources={"metadata": {"path": NOTEBOOK.parent}}
    )
    seconds: dict[int, float] = {}
    with client.setup_kernel():
        for index, cell in enumerate(notebook.cells):
            begin = time.perf_counter()
            client.execute_cell(cell, index)
            seconds[index] = time.perf_counter() - begin
        names = [name for _, name, _ in PARTS]
        question = nbformat.v4.new_code_cell(
            f"import json as _json\nprint(_json.dumps({{name: float(globals()[name]) for name in {names!r}}}))"
        )
        notebook.cells.append(question)
        client.execute_cell(question, len(notebook.cells) - 1)
        notebook.cells.pop()
    return json.loads(question.outputs[0]["text"]), seconds


def results(notebook: nbformat.NotebookNode, accuracies: dict[str, float], seconds: dict[int, float]) -> list[Result]:
    """Put together the lines of the table."""
    lines = []
    for part, name, piece in PARTS:
        index = next(i for i, cell in enumerate(notebook.cells) if piece in cell.source and cell.cell_type == "code")
        lines.append(Result(part, accuracies[name], seconds[index]))
    return lines


def save_figures(notebook: nbformat.NotebookNode) -> list[Path]:
    """Write every PNG of the executed notebook to the output folder."""
    paths = []
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            image = output.get("data", {}).get("image/png")
            if image:
                path = OUTPUT / f"figure-{len(paths) + 1}.png"
                path.write_bytes(base64.b64decode(image))
                paths.append(path)
    return paths


def main() -> int:
    """Run the demo; return the exit status."""
    OUTPUT.mkdir(parents=True, exist_ok=True)
    os.environ["DET_HOME"] = str(OUTPUT / "home")
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    begin = time.perf_counter()
    try:
        accuracies, seconds = execute(notebook)
    except CellExecutionError as error:
        print(error, file=sys.stderr)
        return 1
    finally:
        nbformat.write(notebook, OUTPUT / NOTEBOOK.name)
        subprocess.run([sys.executable, "-m", "det_native.client.command", "down", "--kill"], check=False)
    total = time.perf_counter() - begin

    lines = results(notebook, accuracies, seconds)
    figures = save_figures(notebook)
    print(f"\n{'what ran':42} {'validation accuracy':>20} {'seconds':>9}")
    for line in lines:
        print(f"{line.part:42} {line.accuracy:20.3f} {line.seconds:9.1f}")
    print(f"\nwhole notebook in {total:.1f} s; saved to {(OUTPUT / NOTEBOOK.name).relative_to(ROOT)}")
    for path in figures:
        print(f"figure: {path.relative_to(ROOT)}")

    failures = [line.part for line in lines if line.accuracy < REQUIRED_ACCURACY]
    if failures:
        print(f"validation accuracy under {REQUIRED_ACCURACY}: {', '.join(failures)}", file=sys.stderr)
    if not figures:
        print("no figure in the executed notebook", file=sys.stderr)
    return 1 if failures or not figures else 0


if __name__ == "__main__":
    sys.exit(main())
