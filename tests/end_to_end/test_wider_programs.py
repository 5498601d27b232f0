"""A worker that is given other inputs than the notebook had runs all cells that can run again instead."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from faults import Cluster, Kernel, ended, running_kernel

from det_native.client.handles import Experiment
from det_native.schema.states import ExperimentState, TrialState

pytestmark = pytest.mark.slow

SETUP = """
import ctypes, os, signal, sys
from pathlib import Path
import numpy as np
import torch
import det_native as det
"""

DATA = """
x = np.arange(4_000_000, dtype="float32").reshape(-1, 2) / 1e6
place = x.ctypes.data
"""

# It has an address only. The array is too large to travel for the case that a worker makes another one.
BEHIND = """
numbers = (ctypes.c_float * 4_000_000).from_address(place)
numbers[777_777] = {value}
"""

UNRELATED = """
table = [number ** 2 for number in range(9)]
"""

MODEL = """
torch.manual_seed(5)
model = torch.nn.Linear(2, 1)
"""

CONTEXT = """
config = {"searcher": {"name": "single", "metric": "loss", "max_length": {"batches": 6}, **searcher},
    "min_checkpoint_period": {"batches": 2}, **settings}
context = det.experimental.pytorch.init(config, show="none", wait=False)
"""

LOOP = """
wrapped = context.wrap_model(model)
optimizer = context.wrap_optimizer(torch.optim.SGD(wrapped.parameters(), lr=1e-9))
data = torch.utils.data.TensorDataset(torch.from_numpy(x))
print("value", x.ravel()[777_777])
for batch in context.train(torch.utils.data.DataLoader(data, batch_size=8)):
    loss = wrapped(batch[0]).pow(2).mean()
    context.backward(loss)
    context.step_optimizer(optimizer)
    context.report(loss=loss)
    if context.batch_idx == 3 and died and not Path(died).exists():
        Path(died).touch()
        os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def kernel(cluster: Cluster, tmp_path: Path) -> Iterator[Kernel]:
    """A kernel with nothing but the imports."""
    with running_kernel(cluster, tmp_path.name, SETUP) as kernel:
        yield kernel


def _submit(
    kernel: Kernel, cluster: Cluster, *cells: str, died: str = "", searcher: str = "{}", settings: str = "{}"
) -> Experiment:
    kernel.run(f"searcher, settings, died = {searcher}, {settings}, {died!r}")
    for cell in (DATA, *cells, MODEL, CONTEXT, LOOP):
        _run(kernel, cell)
    return cluster.attach(kernel.value("context.experiment.id"))


def _run(kernel: Kernel, cell: str) -> None:
    """Run a cell; what nobody sees is done by one that is too slow for the first program."""
    kernel.run_slowly(cell) if "from_address" in cell else kernel.run(cell)


def _values(experiment: Experiment) -> list[list[str]]:
    """Return what each trial has had in `x`, in the order of its attempts."""
    every = [[line.text for line in trial.logs()] for trial in experiment.trials]
    return [[text for text in texts if text.startswith("value")] for texts in every]


def test_the_wider_program_has_what_nobody_saw(kernel: Kernel, cluster: Cluster, tmp_path: Path) -> None:
    experiment = _submit(kernel, cluster, UNRELATED, BEHIND.format(value=1000.0), died=str(tmp_path / "died"))
    kernel.kill()  # the trainings of a kernel that is gone go on
    trial = ended(experiment, ExperimentState.COMPLETED)
    assert trial.restarts == 1  # of the worker that died; it then had the program that was proven
    assert _values(experiment) == [["value 0.777777", "value 1000.0", "value 1000.0"]]
    assert trial.warning is not None
    assert "instead of" in trial.warning
    assert "differed from the notebook" in trial.warning
    assert trial.warning == experiment.detail().warning
    [row] = [row for row in experiment.report if row.how == "run instead"]
    assert "differed from the notebook" in row.note
    written = json.loads(experiment.notebook(tmp_path / "ran.ipynb").read_text())
    assert any("from_address" in cell["source"] for cell in written["cells"])
    assert any("number ** 2" in cell["source"] for cell in written["cells"])


@pytest.mark.long
def test_if_the_wider_one_differs_too_the_error_names_the_value(kernel: Kernel, cluster: Cluster) -> None:
    trial = ended(_submit(kernel, cluster, BEHIND.format(value="os.getpid()")), ExperimentState.ERROR)
    assert trial.error is not None
    assert trial.error.type == "InputDiffersError"
    assert "in the notebook" in trial.error.message
    assert "with all cells that can run again, too" in trial.error.message
    assert trial.restarts == 0


@pytest.mark.soak
def test_a_slow_cell_that_fails_there_is_told_with_the_difference(kernel: Kernel, cluster: Cluster) -> None:
    only_here = 'if "ipykernel" not in sys.modules:\n    raise RuntimeError("not here")'
    experiment = _submit(kernel, cluster, only_here + BEHIND.format(value=1000.0))
    trial = ended(experiment, ExperimentState.ERROR)
    assert trial.error is not None
    assert trial.error.type == "InputDiffersError"
    assert "in the notebook" in trial.error.message
    assert "RuntimeError: not here" in str(experiment.logs())


@pytest.mark.long
def test_all_processes_of_a_trial_take_the_same_program(kernel: Kernel, cluster: Cluster) -> None:
    settings = '{"resources": {"slots_per_trial": 2}}'
    experiment = _submit(kernel, cluster, BEHIND.format(value=1000.0), settings=settings)
    ended(experiment, ExperimentState.COMPLETED)
    assert sorted(_values(experiment)[0]) == ["value 0.777777"] * 2 + ["value 1000.0"] * 2


@pytest.mark.soak
def test_the_other_trials_take_it_too(kernel: Kernel, cluster: Cluster) -> None:
    settings = '{"hyperparameters": {"units": {"type": "categorical", "vals": [1, 2, 3]}}}'
    experiment = _submit(kernel, cluster, BEHIND.format(value=1000.0), searcher='{"name": "grid"}', settings=settings)
    ended(experiment, ExperimentState.COMPLETED)
    assert [values[-1] for values in _values(experiment)] == ["value 1000.0"] * 3
    assert all(trial.detail().restarts == 0 for trial in experiment.trials)


SEARCHES = {
    "grid": '{"name": "grid", "max_concurrent_trials": 2}',
    "random": '{"name": "random", "max_trials": 4, "max_concurrent_trials": 2}',
    "optuna": '{"name": "optuna", "max_trials": 4, "max_concurrent_trials": 2}',
    "adaptive_asha": '{"name": "adaptive_asha", "max_trials": 4, "max_concurrent_trials": 2}',
}
RATES = '{"hyperparameters": {"rate": {"type": "double", "minval": 1, "maxval": 2, "count": 4}}, "max_restarts": 0}'


@pytest.mark.long
@pytest.mark.parametrize(
    "name", [name if name == "grid" else pytest.param(name, marks=pytest.mark.soak) for name in SEARCHES]
)
def test_a_search_ends_with_the_first_trial_that_is_given_something_else(
    kernel: Kernel, cluster: Cluster, name: str
) -> None:
    if name == "optuna":
        pytest.importorskip("optuna", reason="optuna is not installed: pip install 'det-native[optuna]'")
    of_the_process = BEHIND.format(value="os.getpid()")
    experiment = _submit(kernel, cluster, of_the_process, searcher=SEARCHES[name], settings=RATES)
    first = ended(experiment, ExperimentState.ERROR)
    error = experiment.detail().error
    assert error is not None
    assert (error.type, error) == ("InputDiffersError", first.error)
    others = [trial.detail() for trial in experiment.trials[1:]]
    assert {trial.state for trial in others} == {TrialState.CANCELED}
    assert max(trial.batches for trial in others) <= 1  # the one that it does when it is told to end


@pytest.mark.long
@pytest.mark.parametrize("name", ["grid", pytest.param("optuna", marks=pytest.mark.soak)])
def test_the_first_trial_has_the_hyperparameters_of_the_notebook(kernel: Kernel, cluster: Cluster, name: str) -> None:
    if name == "optuna":
        pytest.importorskip("optuna", reason="optuna is not installed: pip install 'det-native[optuna]'")
    kernel.run(f"searcher, settings, died = {SEARCHES[name]}, {RATES}, ''")
    for cell in (DATA, MODEL, CONTEXT, 'x = x * context.get_hparam("rate")', LOOP):
        kernel.run(cell)
    experiment = cluster.attach(kernel.value("context.experiment.id"))
    first = ended(experiment, ExperimentState.COMPLETED)
    assert first.hparams["rate"] == kernel.value('context.get_hparam("rate")')
    assert first.warning is None
