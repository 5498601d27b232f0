"""What a real notebook shows and keeps."""

import base64
from typing import Any

import nbformat
import pytest
from local_experiments import write_experiment
from nbclient import NotebookClient

pytestmark = pytest.mark.slow

WAIT = """
import threading
from det_native.local.store import LocalStore
from det_native.schema.states import ExperimentState

store = LocalStore.find("local-2")
done = store.experiment()
held, finish = threading.Event(), threading.Event()

def run():
    with store.lock:
        store.write_experiment(done.model_copy(update={"state": ExperimentState.ACTIVE}))
        held.set()
        finish.wait(60)
        store.write_experiment(done)

thread = threading.Thread(target=run)
thread.start()
held.wait(60)
threading.Timer(0.3, finish.set).start()
det.attach("local-2").wait(timeout=60)
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
    write_experiment(name="digits & <b>bold</b>", trials=2)
    write_experiment(name="second")
    submitted, _, shown, plotted, logged, listed, waited = run(
        SUBMIT,
        "import det_native as det\nexperiment = det.attach('local-1')",
        "experiment",
        "experiment.plot('loss')",
        "experiment.logs()",
        "experiment.trials",
        WAIT,
    )
    report, beside = submitted
    assert report["data"]["text/plain"].splitlines()[:2] == ["Sent 2 of 3 cells, 9 bytes", "It is submitted."]
    assert beside["text"] == "beside it\n"
    data = shown[-1]["data"]
    assert "Experiment local-1: digits" in data["text/plain"]
    assert "digits &amp; &lt;b&gt;bold&lt;/b&gt;" in data["text/html"]
    assert base64.b64decode(data["image/png"]).startswith(b"\x89PNG")
    assert base64.b64decode(plotted[-1]["data"]["image/png"]).startswith(b"\x89PNG")
    assert "it has printed nothing" in logged[-1]["data"]["text/plain"]
    assert listed[-1]["data"]["text/plain"].splitlines() == [
        "[Trial(local-1/1: completed, 4/4 batches, best val_loss 1),",
        " Trial(local-1/2: completed, 4/4 batches, best val_loss 0.5)]",
    ]
    (last,) = (output["data"] for output in waited if "data" in output)
    assert set(last) == {"text/plain", "text/html", "image/png"}, "no widget: a saved one is an error in JupyterLab"
    assert last["text/plain"].startswith("Experiment local-2: second: completed")
