"""How experiments end: by their own code, by the user's word, and by processes that go."""

from __future__ import annotations

import json
import signal

import psutil
import pytest
from faults import GATE_CELL, PATIENCE, Cluster, Gate, Kernel, assert_complete_rows, ended, failure, line_of
from programs import BATCHES, CONFIG, TORCH_SETUP, TORCH_TRIAL

from det_native.client.connect import connect
from det_native.client.handles import Experiment
from det_native.errors import UserCodeError
from det_native.schema.states import ExperimentState, TrialState

pytestmark = pytest.mark.slow

# What happens before the fifth batch is the hyperparameter "way".
WAYS = """
class Ending(Digits):
    def visit(self, batch_idx):
        super().visit(batch_idx)
        if batch_idx == 4:
            way = self.context.get_hparam("way")
            if way == "leave":
                os._exit(3)
            if way == "exit":
                sys.exit("enough")
            if way == "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            if way == "stop":
                self.context.set_stop_requested(True)
"""

TALK = """
class Talking(Digits):
    def train_batch(self, batch, epoch_idx, batch_idx):
        print("the colour is", os.environ["FAVOURITE_COLOUR"])
        print("to standard error", file=sys.stderr)
        return super().train_batch(batch, epoch_idx, batch_idx)
"""

PARENT = """
import subprocess

class Parent(Digits):
    def visit(self, batch_idx):
        if batch_idx == 4:
            child = subprocess.Popen(["sleep", "1000"], start_new_session=True)
            gate(self.context.get_hparam("port"), child.pid)
"""


@pytest.fixture(scope="module")
def defined(module_kernel: Kernel) -> Kernel:
    """The module's kernel, with the program defined."""
    for source in (TORCH_SETUP, GATE_CELL, CONFIG, TORCH_TRIAL, WAYS, TALK, PARENT):
        module_kernel.run(source)
    return module_kernel


def _create(kernel: Kernel, name: str, arguments: str = "", **changes: object) -> int:
    call = f"det.experimental.create({name}, configuration(**{changes!r}), {arguments})"
    return kernel.submit(f"experiment = {call}")


def _batches(experiment: Experiment) -> list[int]:
    return [row["batch"] for row in experiment.trials[0].metrics("training")]


def test_processes_that_vanish_use_up_the_restarts(defined: Kernel, cluster: Cluster) -> None:
    left = cluster.attach(_create(defined, "Ending", hyperparameters={"way": "leave"}, max_restarts=1))
    killed = cluster.attach(_create(defined, "Ending", hyperparameters={"way": "kill"}, max_restarts=1))
    for experiment, words in ((left, "exit code 3"), (killed, "killed by signal 9 (SIGKILL)")):
        error = failure(experiment)
        assert not isinstance(error, UserCodeError)
        assert words in str(error)
        trial = ended(experiment, ExperimentState.ERROR)
        assert trial.restarts == 1
        assert "no restarts left (max_restarts: 1)" in str(experiment.logs())
        # The second attempt went on after the checkpoint at batch 3; what came after that was not reported every time.
        assert _batches(experiment)[:3] == [1, 2, 3]
    assert "memory" in str(failure(killed))


def test_sys_exit_is_an_error_of_the_code(defined: Kernel, cluster: Cluster) -> None:
    experiment = cluster.attach(_create(defined, "Ending", hyperparameters={"way": "exit"}))
    error = failure(experiment)
    assert isinstance(error, UserCodeError)
    assert "sys.exit('enough') was called during the training." in str(error)
    trial = ended(experiment, ExperimentState.ERROR)
    assert trial.restarts == 1
    assert trial.error is not None
    assert trial.error.line == line_of(WAYS, "sys.exit")
    assert f"Cell [{trial.error.cell}], line {trial.error.line}, in visit" in str(error)


def test_a_stop_by_the_code_completes(defined: Kernel, cluster: Cluster) -> None:
    experiment = cluster.attach(_create(defined, "Ending", hyperparameters={"way": "stop"}))
    trial = ended(experiment, ExperimentState.COMPLETED)
    assert (trial.restarts, trial.batches) == (0, 5)
    assert _batches(experiment) == [1, 2, 3, 4, 5]
    assert experiment.checkpoints[-1].batch == 5


def test_a_signal_to_end_from_outside_costs_a_restart_only(defined: Kernel, cluster: Cluster, gate: Gate) -> None:
    settings = {"stops": "8", "port": gate.port}
    experiment = cluster.attach(_create(defined, "Digits", hyperparameters=settings))
    visitor = gate.next()
    psutil.Process(visitor.pid).send_signal(signal.SIGTERM)
    visitor.go()
    assert ended(experiment, ExperimentState.COMPLETED).restarts == 1
    assert "at batch 8." in str(experiment.logs())
    assert_complete_rows(experiment, BATCHES)


def test_kill_ends_the_processes_too(defined: Kernel, cluster: Cluster, gate: Gate) -> None:
    experiment = cluster.attach(_create(defined, "Parent", hyperparameters={"port": gate.port}))
    visitor = gate.next()
    processes = [psutil.Process(visitor.pid), psutil.Process(int(visitor.text))]
    experiment.kill()
    assert experiment.wait(timeout=10).state is ExperimentState.CANCELED
    _, alive = psutil.wait_procs(processes, timeout=2)
    assert alive == []
    assert [trial.state for trial in experiment.trials] == [TrialState.CANCELED]
    assert _batches(experiment)[:3] == [1, 2, 3]
    visitor.line.close()


def test_a_quick_check_with_variables_of_the_environment(defined: Kernel, cluster: Cluster) -> None:
    variables = {"environment_variables": ["FAVOURITE_COLOUR=green"]}
    experiment = cluster.attach(_create(defined, "Talking", "test=True", environment=variables))
    assert ended(experiment, ExperimentState.COMPLETED).batches == 1
    [trial] = experiment.trials
    assert [row["batch"] for row in trial.metrics("training")] == [1]
    assert [row["batch"] for row in trial.metrics("validation")] == [1]
    lines = [line.text for line in experiment.logs()]
    assert lines.count("the colour is green") == 1
    assert lines.count("to standard error") == 1


def test_a_search_of_four_trials_on_two_slots(defined: Kernel, cluster: Cluster, gate: Gate) -> None:
    defined.run("def space(port): return {'lr': det.Log(-3, -1), 'stops': '2', 'port': port}")
    searcher = {"name": "random", "metric": "val_loss", "max_length": {"epochs": 3}, "max_trials": 4}
    call = f"configuration(hyperparameters=space({gate.port}), searcher={json.dumps(searcher)})"
    experiment = cluster.attach(defined.submit(f"experiment = det.experimental.create(Digits, {call})"))
    visitors = [gate.next(), gate.next()]
    states = [trial.state for trial in experiment.trials]
    assert states == [TrialState.RUNNING] * 2 + [TrialState.QUEUED] * 2
    slots = connect(start=False).get("/master")["slots"]
    assert {slot["trial_id"] for slot in slots} == {trial.id for trial in experiment.trials[:2]}
    for visitor in visitors:
        visitor.go()
    for _ in range(2):
        gate.next().go()
    assert experiment.wait(timeout=PATIENCE).state is ExperimentState.COMPLETED
    trials = experiment.trials
    assert [trial.state for trial in trials] == [TrialState.COMPLETED] * 4
    assert len({trial.hparams["lr"] for trial in trials}) == 4
    assert all([row["batch"] for row in trial.metrics()] == list(range(1, BATCHES + 1)) for trial in trials)
    best = min(trial.best_validation or 9.0 for trial in trials)
    assert experiment.best_trial.best_validation == best
    assert experiment.top_checkpoint().metrics["val_loss"] == best
