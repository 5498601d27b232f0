"""The notebooks of this repository say the same when they are submitted as when all their cells are run."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"
#: Code cells whose numbers differ from run to run, by their places from 1: they train without a seed, or show a search
#: that goes on with whichever trial is ready first.
VARYING = {"02_own_pytorch_loop": {3}, "03_keras": {3}, "04_estimator": {5, 6}, "05_search": {5, 6, 7, 8}}
# What differs from run to run: names of checkpoints, and how long cells took, with what is said of them for that.
_NAMES = re.compile(r"checkpoint [0-9a-f]{8}\b|/\S*[0-9a-f]{8}-[0-9a-f-]{27}\b")
_NUMBERS = re.compile(r"\d+(\.\d+)?")
_REPORT = re.compile(r"(Sent [^\n]*)\n.*", re.DOTALL)


def environment(home: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("DET_", "PYTEST_"))}
    own = {"DET_HOME": str(home), "DET_SLOTS": "cpu:2", "TMPDIR": str(home.with_name("temporary"))}
    return {**kept, **own, "OMP_NUM_THREADS": "1", "TF_CPP_MIN_LOG_LEVEL": "3"}


def det(*words: str) -> list[str]:
    return [str(Path(sys.executable).with_name("det")), *words]


def said(notebook: Any, varying: set[int]) -> list[list[str]]:
    """Return what each code cell printed and showed, without what differs from run to run."""
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    shown = []
    for number, cell in enumerate(cells, 1):
        printed = "".join(output.text for output in cell.outputs if output.get("name") == "stdout")
        if "INFO:" in printed:  # the log of tf.estimator has rates and folders
            printed = printed.splitlines()[-1]
        texts = [printed]
        for output in cell.outputs:
            if "data" in output:
                texts.append(f"{sorted(output.data)}: {output.data.get('text/plain', '')}")
            if output.output_type == "execute_result" and number not in varying:
                texts.append(str(output.data.get("image/png", "")))
        texts = [_NAMES.sub("NAME", _REPORT.sub(r"\1", text)) for text in texts]
        shown.append([_NUMBERS.sub("NUMBER", text) for text in texts] if number in varying else texts)
    return shown


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("path", sorted(NOTEBOOKS.glob("*.ipynb")), ids=lambda path: path.stem)
def test_a_submitted_notebook_says_what_run_all_says(path: Path, tmp_path: Path) -> None:
    homes = {}
    for way in ("submitted", "plain"):
        (tmp_path / way / "work").mkdir(parents=True)
        (tmp_path / way / "temporary").mkdir()
        shutil.copy(path, tmp_path / way / "work")
        homes[way] = tmp_path / way / "home"
    submitted = tmp_path / "submitted" / "work" / path.name
    process = subprocess.Popen(
        det("submit", str(submitted), "--wait"),
        env=environment(homes["submitted"]),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        notebook = nbformat.read(path, as_version=4)
        folder = tmp_path / "plain" / "work"
        client = NotebookClient(notebook, timeout=400, resources={"metadata": {"path": str(folder)}})
        client.execute(env=environment(homes["plain"]))
        output, _ = process.communicate(timeout=400)
        assert process.returncode == 0, output
        assert "experiments ," not in output, "each training has a number, those of `fit()` here, too"
        executed = nbformat.read(homes["submitted"] / "notebook-runs" / "1" / "executed.ipynb", as_version=4)
        varying = VARYING.get(path.stem, set())
        assert said(executed, varying) == said(notebook, varying)
    finally:
        process.kill()
        process.wait()
        for home in homes.values():
            subprocess.run(det("down", "--kill"), env=environment(home), capture_output=True, check=False)
