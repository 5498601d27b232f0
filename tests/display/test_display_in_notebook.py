"""What a real notebook shows and keeps."""

import base64
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

pytestmark = pytest.mark.slow

TESTS = Path(__file__).parents[1]

MAKE = f"""
import sys, threading
sys.path.insert(0, {str(TESTS)!r})
from made_experiments import make_experiment
from det_native.schema.states import ExperimentState

experiment = make_experiment(name="digits & <b>bold</b>", trials=2)
second = make_experiment(number=2, name="second")
second.source.write(state=ExperimentState.ACTIVE)
ends = dict(state=ExperimentState.COMPLETED)
"""

WAIT = """
threading.Timer(0.3, lambda: second.source.write(**ends)).start()
second.wait(timeout=60)
"""


def run(*sources: str) -> list[list[Any]]:
    """Run cells in a kernel and return the outputs of each."""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in sources])
    NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
    nbformat.validate(notebook)
    return [cell.outputs for cell in notebook.cells]


SUBMIT = """
from det_native.display.report import show_report
from det_native.schema.rest import CaptureRow

rows = [CaptureRow(what="2 cells", how="source", size=9, cell="1", status="new", note="")]
shown = show_report(rows, contents="2 of 3 cells")
shown.say("Sending ...")
print("beside it")
shown.update()
shown.say("It is submitted.")
"""


def test_what_is_said_of_a_submit_experiments_figures_and_progress_stay_in_the_notebook() -> None:
    submitted, _, shown, plotted, logged, listed, waited = run(
        SUBMIT,
        MAKE,
        "experiment",
        "experiment.plot('loss')",
        "experiment.logs()",
        "experiment.trials",
        WAIT,
    )
    report, beside = submitted
    assert report["data"]["text/plain"].splitlines()[:2] == ["Sent 2 of 3 cells, 9 B", "It is submitted."]
    assert beside["text"] == "beside it\n"
    data = shown[-1]["data"]
    assert "Experiment 1: digits" in data["text/plain"]
    assert "digits &amp; &lt;b&gt;bold&lt;/b&gt;" in data["text/html"]
    assert base64.b64decode(data["image/png"]).startswith(b"\x89PNG")
    assert base64.b64decode(plotted[-1]["data"]["image/png"]).startswith(b"\x89PNG")
    assert "(no log lines)" in logged[-1]["data"]["text/plain"]
    assert listed[-1]["data"]["text/plain"].splitlines() == [
        "[Trial(1.1: completed, 4/4 batches, best val_loss 1),",
        " Trial(1.2: completed, 4/4 batches, best val_loss 0.5)]",
    ]
    (last,) = (output["data"] for output in waited if "data" in output)
    assert set(last) == {"text/plain", "text/html", "image/png"}, "no widget: a saved one is an error in JupyterLab"
    assert last["text/plain"].startswith("Experiment 2: second: completed")
