"""As a user begins: a wheel in an empty environment with ``[keras,lab]``, Lab started, the Keras notebook run."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import urllib.request
import venv
from pathlib import Path

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.soak]

ROOT = Path(__file__).parents[2]
PATIENCE = 900.0
_FOREIGN = ("PYTHONPATH", "VIRTUAL_ENV", "KERAS_BACKEND")


def test_wheel_lab_and_notebook(tmp_path: Path) -> None:
    run([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)], ROOT, dict(os.environ))
    [wheel] = tmp_path.glob("*.whl")
    venv.create(tmp_path / "env", with_pip=True, symlinks=True)
    tools = tmp_path / "env" / "bin"
    own = {name: str(tmp_path / "user") for name in ("HOME", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "IPYTHONDIR")}
    kept = {name: value for name, value in os.environ.items() if name not in _FOREIGN}
    environment = kept | {"PATH": f"{tools}{os.pathsep}{os.environ['PATH']}", "DET_HOME": str(tmp_path / "det")}
    run(
        [str(tools / "python"), "-m", "pip", "install", "-q", f"{wheel}[keras,lab]", "scikit-learn"],
        tmp_path,
        environment,
    )
    environment |= own
    assert lab_tells_its_version(tools / "jupyter", tmp_path, environment)
    shutil.copy(ROOT / "notebooks" / "03_keras.ipynb", tmp_path / "keras.ipynb")
    code = (
        "import nbformat, nbclient; notebook = nbformat.read('keras.ipynb', 4); "
        "nbclient.NotebookClient(notebook, timeout=600, kernel_name='python3').execute(); "
        "nbformat.write(notebook, 'ran.ipynb')"
    )
    try:
        run([str(tools / "python"), "-c", code], tmp_path, environment)
    finally:
        run([str(tools / "det"), "down", "--kill"], tmp_path, environment)
    cells = json.loads((tmp_path / "ran.ipynb").read_text())["cells"]
    assert all(cell["execution_count"] for cell in cells if cell["cell_type"] == "code" and cell["source"])


def lab_tells_its_version(jupyter: Path, folder: Path, environment: dict[str, str]) -> bool:
    """Start Lab, ask its server, and end it."""
    root = ["--allow-root"] if os.getuid() == 0 else []
    command = [str(jupyter), "lab", "--no-browser", "--port=0", "--ServerApp.token=t", *root]
    with subprocess.Popen(command, cwd=folder, env=environment, stderr=subprocess.PIPE, text=True) as lab:
        assert lab.stderr is not None
        try:
            line = next(line for line in lab.stderr if "http://127.0.0.1:" in line)
            base = line[line.index("http://127.0.0.1:") :].partition("/lab")[0]
            with urllib.request.urlopen(f"{base}/lab?token=t", timeout=60) as page:
                return b"det-native" in page.read()
        finally:
            lab.terminate()
            lab.stderr.read()


def run(command: list[str], folder: Path, environment: dict[str, str]) -> None:
    """Run a command that has to succeed."""
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout}\n{done.stderr}"
