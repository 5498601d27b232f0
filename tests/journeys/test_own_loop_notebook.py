"""The notebook of a user's own PyTorch loop runs from its first cell to its last, and shows what it says."""

from __future__ import annotations

import pytest
from journey_kernel import Notebook, Ran
from saved_notebook import assert_saved_without_outputs, run_all, value

pytestmark = [pytest.mark.slow, pytest.mark.long]

NOTEBOOK = "02_own_pytorch_loop.ipynb"


@pytest.fixture(scope="module")
def ran(notebook: Notebook) -> list[Ran]:
    return run_all(NOTEBOOK, notebook)


def test_the_loop_learns_the_digits_here_on_the_cluster_and_searched(ran: list[Ran], notebook: Notebook) -> None:
    found = value(notebook, "(local_accuracy, cluster_accuracy, loaded_accuracy)")
    assert isinstance(found, tuple)
    assert min(found) > 0.95
    assert value(notebook, "cluster_experiment.history == experiment.history") is True
    assert any("largest difference to the history here: 0e+00" in one.stdout for one in ran), "both have one thread"


def test_the_loop_without_det_native_runs_again(ran: list[Ran], notebook: Notebook) -> None:
    notebook.run("cluster_experiment.notebook('sent.ipynb')")
    sent = (notebook.folder / "sent.ipynb").read_text()
    assert "def loss_of" in sent
    assert "loss.backward()" in sent, "what ran, runs again: it is quick"


def test_the_search_has_a_trial_for_each_rate_and_a_figure(ran: list[Ran], notebook: Notebook) -> None:
    assert value(notebook, "sorted(trial.hparams['lr'] for trial in searched.trials)") == [0.0005, 0.005, 0.05]
    assert value(notebook, "abs(checkpoint.metrics['val_accuracy'] - loaded_accuracy) < 1e-5") is True
    assert any("image/png" in data for one in ran for data in one.shown)


def test_the_saved_notebook_has_no_outputs(ran: list[Ran]) -> None:
    assert_saved_without_outputs(NOTEBOOK, ran)
