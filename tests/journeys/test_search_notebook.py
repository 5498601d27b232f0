"""The notebook of a search runs from its first cell to its last, and shows what it says."""

from __future__ import annotations

import pytest
from journey_kernel import Notebook, Ran
from saved_notebook import assert_saved_without_outputs, run_all, value

pytestmark = [pytest.mark.slow, pytest.mark.long]

NOTEBOOK = "05_search.ipynb"


@pytest.fixture(scope="module")
def ran(notebook: Notebook) -> list[Ran]:
    return run_all(NOTEBOOK, notebook)


def test_the_search_runs_what_its_preview_says(ran: list[Ran], notebook: Notebook) -> None:
    assert value(notebook, "str(experiment.state)") == "Completed"
    assert value(notebook, "len(experiment.trials)") == value(notebook, "len(preview.trials)") == 30
    # Who is trained on depends on the metrics, but not how far: an epoch is 1437 / 32 batches.
    lengths = value(notebook, "sorted({trial.detail().batches for trial in experiment.trials})")
    epochs = value(notebook, "sorted({stages[-1] for stages in preview.trials})")
    assert epochs == [1, 4, 16]
    assert lengths == [int(each * 1437 / 32) for each in (1, 4, 16)]


def test_the_best_one_is_good_and_loads_back(ran: list[Ran], notebook: Notebook) -> None:
    assert value(notebook, "best.best_validation") < 0.08  # type: ignore[operator]
    assert value(notebook, "abs(loaded_error - experiment.top_checkpoint().metrics['val_error']) < 1e-6") is True


def test_the_saved_notebook_has_no_outputs(ran: list[Ran]) -> None:
    assert_saved_without_outputs(NOTEBOOK, ran)
