"""The notebook of tf.estimator runs from its first cell to its last, and shows what it says."""

from __future__ import annotations

import pytest
from journey_kernel import Notebook, Ran
from saved_notebook import assert_saved_without_outputs, run_all, value

pytestmark = [pytest.mark.slow, pytest.mark.soak]

NOTEBOOK = "04_estimator.ipynb"


@pytest.fixture(scope="module")
def ran(notebook: Notebook) -> list[Ran]:
    return run_all(NOTEBOOK, notebook)


def test_iris_and_digits_are_learnt_here_and_on_the_cluster(ran: list[Ran], notebook: Notebook) -> None:
    found = value(notebook, "(local_accuracy, cluster_accuracy, loaded_accuracy, float(metrics['accuracy']))")
    assert isinstance(found, tuple)
    assert min(found) > 0.9
    assert value(notebook, "tf.executing_eagerly()") is True


def test_what_is_saved_and_exported_answers_as_it_was_evaluated(ran: list[Ran], notebook: Notebook) -> None:
    assert value(notebook, "abs(checkpoint.metrics['accuracy'] - loaded_accuracy) < 1e-5") is True
    assert value(notebook, "abs(metrics['accuracy'] - exported_accuracy) < 1e-5") is True


def test_the_saved_notebook_has_no_outputs(ran: list[Ran]) -> None:
    assert_saved_without_outputs(NOTEBOOK, ran)
