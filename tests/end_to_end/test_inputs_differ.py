"""A worker that is given other inputs than the notebook had: the experiment ends, and says which."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from faults import Cluster, Kernel, ended, running_kernel

from det_native.client.handles import Experiment
from det_native.schema.states import ExperimentState, TrialState

pytestmark = pytest.mark.slow

SETUP = """
import ctypes, os
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
for batch in context.train(torch.utils.data.DataLoader(data, batch_size=8)):
    loss = wrapped(batch[0]).pow(2).mean()
    context.backward(loss)
    context.step_optimizer(optimizer)
    context.report(loss=loss)
"""


@pytest.fixture
def kernel(cluster: Cluster, tmp_path: Path) -> Iterator[Kernel]:
    """A kernel with nothing but the imports."""
    with running_kernel(cluster, tmp_path.name, SETUP) as kernel:
        yield kernel


def _submit(kernel: Kernel, cluster: Cluster, *cells: str, searcher: str = "{}", settings: str = "{}") -> Experiment:
    kernel.run(f"searcher, settings = {searcher}, {settings}")
    for cell in (DATA, *cells, MODEL, CONTEXT, LOOP):
        _run(kernel, cell)
    return cluster.attach(kernel.value("context.experiment.id"))


def _run(kernel: Kernel, cell: str) -> None:
    """Run a cell; what nobody sees is done by one that is too slow to run again."""
    kernel.run_slowly(cell) if "from_address" in cell else kernel.run(cell)


def test_what_nobody_saw_is_an_error_that_says_what_to_do(kernel: Kernel, cluster: Cluster) -> None:
    experiment = _submit(kernel, cluster, BEHIND.format(value=1000.0))
    kernel.kill()  # the trainings of a kernel that is gone go on
    trial = ended(experiment, ExperimentState.ERROR)
    assert trial.error is not None
    assert trial.error.type == "InputDiffersError"
    assert "in the notebook" in trial.error.message
    assert "det-include" in trial.error.message
    assert trial.restarts == 0


def test_the_cell_that_nobody_saw_can_be_included(kernel: Kernel, cluster: Cluster) -> None:
    ended(_submit(kernel, cluster, "# det-include" + BEHIND.format(value=1000.0)), ExperimentState.COMPLETED)


SEARCHES = {
    "grid": '{"name": "grid", "max_concurrent_trials": 2}',
    "random": '{"name": "random", "max_trials": 4, "max_concurrent_trials": 2}',
    "optuna": '{"name": "optuna", "max_trials": 4, "max_concurrent_trials": 2}',
    "adaptive_asha": '{"name": "adaptive_asha", "max_trials": 4, "max_concurrent_trials": 2}',
}
LONG = '{"max_length": {"batches": 200_000}}'
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
    experiment = _submit(kernel, cluster, of_the_process, searcher=f"{SEARCHES[name]} | {LONG}", settings=RATES)
    first = ended(experiment, ExperimentState.ERROR)
    error = experiment.detail().error
    assert error is not None
    assert (error.type, error) == ("InputDiffersError", first.error)
    assert {trial.detail().state for trial in experiment.trials[1:]} == {TrialState.CANCELED}


@pytest.mark.long
@pytest.mark.parametrize("name", ["grid", pytest.param("optuna", marks=pytest.mark.soak)])
def test_the_first_trial_has_the_hyperparameters_of_the_notebook(kernel: Kernel, cluster: Cluster, name: str) -> None:
    if name == "optuna":
        pytest.importorskip("optuna", reason="optuna is not installed: pip install 'det-native[optuna]'")
    kernel.run(f"searcher, settings = {SEARCHES[name]}, {RATES}")
    for cell in (DATA, MODEL, CONTEXT, 'x = x * context.get_hparam("rate")', LOOP):
        kernel.run(cell)
    experiment = cluster.attach(kernel.value("context.experiment.id"))
    first = ended(experiment, ExperimentState.COMPLETED)
    assert first.hparams["rate"] == kernel.value('context.get_hparam("rate")')
    assert first.warning is None


OTHERS = """
import sys
from collections import namedtuple
here = "ipykernel" in sys.modules
Settings = namedtuple("Settings", "scale name")
settings = Settings(0.5 if here else 0.1, "wide")
text = ("a" if here else "b") * (9 << 20)
"""
READING = """
model, optimizer = context.wrap(model, torch.optim.SGD(model.parameters(), lr=0.01))
seen = []
for epoch in context.epochs(1):
    seen.append((settings, type(settings) is Settings, text[0]))
    optimizer.zero_grad()
    loss = model(torch.ones(4, 2)).pow(2).mean()
    loss.backward()
    optimizer.step()
    context.report(loss=loss)
"""


def test_a_named_tuple_is_put_right_and_what_is_too_large_for_that_has_a_line_below_the_cell(kernel: Kernel) -> None:
    for cell in (OTHERS, MODEL, 'context = det.experimental.pytorch.init(show="none")'):
        kernel.run(cell)
    begun = kernel.begin(READING)
    kernel.shows(begun, "An input of the training differed: text, read by the loop: 'bbb")
    kernel.finish(begun)
    assert kernel.value("[[tuple(read), same, first] for read, same, first in seen]") == [[[0.5, "wide"], True, "b"]]
