"""A search whose trials are commands: each has its hyperparameters, and the search goes by what they report."""

from __future__ import annotations

from typing import Any

import pytest
from command_scripts import LOOP, Submit
from faults import ended

from det_native.schema.states import ExperimentState

FACTOR = {"type": "double", "minval": 0.1, "maxval": 0.9, "count": 3}
SEARCHERS: dict[str, dict[str, Any]] = {
    "grid": {"name": "grid", "max_length": {"batches": 8}},
    "random": {"name": "random", "max_trials": 3, "max_length": {"batches": 8}},
    "asha": {"name": "async_halving", "max_trials": 4, "max_length": {"batches": 16}, "num_rungs": 2, "divisor": 4},
}


@pytest.mark.parametrize("name", list(SEARCHERS))
def test_trials_of_a_search_are_compared_by_what_they_report(submit: Submit, name: str) -> None:
    searcher: dict[str, Any] = {"metric": "val_loss", **SEARCHERS[name]}
    source = LOOP.replace("int(word) for word in sys.argv[1:4]", "-1, 0, 0").replace(
        "    while state", "    [length] = [op.length for op in [next(context.searcher.operations())]]\n    while state"
    )
    config = {"hyperparameters": {"factor": FACTOR}, "searcher": searcher}
    experiment = submit("python3 train.py", {"train.py": source}, **config)
    ended(experiment, ExperimentState.COMPLETED)
    trials = experiment.trials
    assert len({trial.hparams["factor"] for trial in trials}) == len(trials) == (4 if name == "asha" else 3)
    lengths = sorted(trial.detail().batches for trial in trials)
    assert lengths == ([4, 4, 4, 16] if name == "asha" else [8, 8, 8])
    rows = [(row["val_loss"], trial) for trial in trials for row in trial.metrics("validation")]
    assert experiment.best_trial.id == min(rows, key=lambda row: row[0])[1].id
