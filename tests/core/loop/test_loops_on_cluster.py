"""Loops of any framework on real workers: what they make comes home, whatever happens on the way."""

from __future__ import annotations

import signal
from typing import Any

import pytest
from faults import Cluster, Gate, Kernel, checkpoint_at, ended
from loop_programs import JAX, SCIKIT_LEARN, XGBOOST, LoopProgram

from det_native.client.handles import Experiment
from det_native.schema.states import ExperimentState

pytestmark = pytest.mark.slow

PROGRAMS = [
    pytest.param(SCIKIT_LEARN, "", id="scikit-learn"),
    pytest.param(XGBOOST, "xgboost", id="xgboost", marks=pytest.mark.long),
    pytest.param(JAX, "jax", id="jax", marks=pytest.mark.long),
]


def begun(kernel: Kernel, program: LoopProgram, *, local: bool = False, **places: Any) -> None:
    """Run the cells of a program up to its loop."""
    config = {
        "searcher": {"name": "single", "metric": "loss", "max_length": program.length},
        "hyperparameters": {"stops": "", "port": 0, **places},
        "min_checkpoint_period": {"epochs": 1},
        "max_restarts": 1,
    }
    kernel.run(program.setup)
    kernel.run(f"context = det.experimental.core.init({config}, local={local}, show='none')")
    kernel.run("stops, port = context.get_hparam('stops'), context.get_hparam('port')\n" + program.objects)


@pytest.mark.parametrize(("program", "module"), PROGRAMS)
@pytest.mark.parametrize("local", [False, pytest.param(True, marks=pytest.mark.long)], ids=["cluster", "local"])
def test_the_numbers_are_those_of_the_plain_notebook(
    program: LoopProgram, module: str, local: bool, kernel: Kernel, cluster: Cluster
) -> None:
    if module:
        pytest.importorskip(module)
    begun(kernel, program, local=local)
    kernel.run(program.loop)
    assert kernel.value(program.numbers) == program.plainly()
    experiment = cluster.attach(kernel.value("context.experiment.id"))
    assert ended(experiment, ExperimentState.COMPLETED).batches == experiment.trials[0].detail().target_batches
    assert kernel.value("__import__('sys').modules.get('torch') is None") or module == "jax"


@pytest.mark.parametrize(("program", "module"), PROGRAMS)
def test_a_killed_trial_goes_on_to_the_same_numbers(
    program: LoopProgram, module: str, kernel: Kernel, cluster: Cluster, gate: Gate
) -> None:
    if module:
        pytest.importorskip(module)
    begun(kernel, program, stops="2", port=gate.port)
    waiting = kernel.begin(program.loop)
    visitor = gate.next()
    experiment = Experiment(cluster.attach(1).source, max(cluster.running()))
    if program is not XGBOOST:
        checkpoint_at(experiment, 8 if program is JAX else 2)
    visitor.die(signal.SIGKILL)
    gate.next().go()
    kernel.finish(waiting)
    assert kernel.value(program.numbers) == program.plainly()
    assert ended(experiment, ExperimentState.COMPLETED).restarts == 1


SEARCHED = """
context = det.experimental.core.init({
    "searcher": {"name": "grid", "metric": "loss", "max_length": {"batches": 3}},
    "hyperparameters": {"step": {"type": "categorical", "vals": [1, 3, 2]}},
}, show="none")
total, seen = 10, []
"""
SEARCHING = """
for epoch in context.epochs(3):
    total -= context.get_hparam("step")
    seen.append(total)
    context.report(loss=total)
"""


@pytest.mark.long
def test_of_a_search_the_best_trial_comes_home(kernel: Kernel, cluster: Cluster) -> None:
    kernel.run(SEARCHED)
    kernel.run(SEARCHING)
    assert kernel.value("seen") == [7, 4, 1]
    assert kernel.value("context.experiment.best_trial.hparams") == {"step": 3}
    experiment = cluster.attach(kernel.value("context.experiment.id"))
    assert sorted(trial.detail().best_validation for trial in experiment.trials) == [1, 4, 7]


LEFT = """
for epoch in context.epochs(5):
    seen.append(epoch)
    context.report(loss=1)
    if epoch == 2: break
"""


@pytest.mark.long
def test_a_loop_that_is_left_and_one_that_fails(kernel: Kernel, cluster: Cluster) -> None:
    kernel.run("context = det.experimental.core.init({'max_restarts': 0}, show='none')\nseen = []")
    kernel.run(
        "for epoch in context.epochs(5):\n    seen.append(epoch)\n    context.report(loss=1)\n    if epoch == 2: break"
    )
    assert kernel.value("[seen, epoch]") == [[0, 1, 2], 2]
    assert ended(cluster.attach(kernel.value("context.experiment.id")), ExperimentState.COMPLETED).batches == 3
    kernel.run("context = det.experimental.core.init({'max_restarts': 0}, show='none')")
    failed = kernel.run("for epoch in context.epochs(5):\n    seen[9]", fails=True)
    assert "IndexError" in failed.error
    assert ended(cluster.attach(kernel.value("context.experiment.id")), ExperimentState.ERROR)
