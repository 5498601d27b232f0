"""The notebook of tf.keras runs from its first cell to its last, and shows what it says."""

from __future__ import annotations

import pytest
from journey_kernel import Notebook, Ran
from saved_notebook import assert_saved_without_outputs, run_all, value

pytestmark = [pytest.mark.slow, pytest.mark.long]

NOTEBOOK = "03_keras.ipynb"


@pytest.fixture(scope="module")
def ran(notebook: Notebook) -> list[Ran]:
    return run_all(NOTEBOOK, notebook)


def test_the_digits_are_learnt_by_fit_by_the_class_here_and_on_the_cluster(ran: list[Ran], notebook: Notebook) -> None:
    found = value(notebook, "(fit_accuracy, local_accuracy, cluster_accuracy, loaded_accuracy)")
    assert isinstance(found, tuple)
    assert min(found) > 0.95
    same = "[one['searcher'] == other['searcher'] for one, other in [(here.config, experiment.config)]]"
    assert value(notebook, same) == [True]


def test_the_best_checkpoint_is_the_compiled_model(ran: list[Ran], notebook: Notebook) -> None:
    assert value(notebook, "abs(checkpoint.metrics['val_accuracy'] - loaded_accuracy) < 1e-5") is True
    assert value(notebook, "abs(loaded_accuracy - cluster_accuracy) < 1e-5") is True
    assert value(notebook, "int(best_model.optimizer.iterations) == checkpoint.batch") is True


def test_the_saved_notebook_has_no_outputs(ran: list[Ran]) -> None:
    assert_saved_without_outputs(NOTEBOOK, ran)
