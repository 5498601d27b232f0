"""How experiments end: by their own code, by the user's word, and by processes that go."""

from __future__ import annotations

import json

import psutil
import pytest
from faults import PATIENCE, Cluster, Gate, Kernel, ended, line_of
from programs import BATCHES

from det_native.client.connect import connect
from det_native.client.handles import Trial
from det_native.schema import routes
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

PARENT = """
import subprocess

class Parent(Digits):
    def visit(self, batch_idx):
        print("the colour is", os.environ["FAVOURITE_COLOUR"])
        print("to standard error", file=sys.stderr)
        if batch_idx == 4:
            child = subprocess.Popen(["sleep", "1000"], start_new_session=True)
            gate(self.context.get_hparam("port"), child.pid)
"""


def _batches(trial: Trial) -> list[int]:
    return [row["batch"] for row in trial.metrics("training")]


@pytest.mark.long
def test_trials_that_end_early(kernel: Kernel, cluster: Cluster) -> None:
    kernel.run(WAYS)
    kernel.run("ways = {'way': det.Categorical(['leave', 'kill', 'exit', 'stop'])}")
    searcher = {"name": "grid", "metric": "val_loss", "max_length": {"epochs": 3}}
    call = f"configuration(hyperparameters=ways, max_restarts=1, searcher={searcher!r})"
    experiment = cluster.attach(kernel.submit(f"experiment = det.experimental.create(Ending, {call})"))
    ended(experiment, ExperimentState.COMPLETED)  # as one of its trials did
    found = {trial.hparams["way"]: trial for trial in experiment.trials}
    for way, words in (("leave", "exit code 3"), ("kill", "killed by signal 9 (SIGKILL)")):
        detail = found[way].detail()
        assert (detail.state, detail.restarts) == (TrialState.ERROR, 1)
        assert detail.error is not None
        assert words in detail.error.message
        assert words in str(found[way].logs())
        assert "no restarts left (max_restarts: 1)" in str(found[way].logs())
        # Batches that were not reported yet are lost with the process; there is no gap before them.
        assert _batches(found[way]) == list(range(1, len(_batches(found[way])) + 1))
    left = found["exit"].detail()
    assert (left.state, left.restarts) == (TrialState.ERROR, 0)
    assert left.error is not None
    assert left.error.line == line_of(WAYS, "sys.exit")
    assert "sys.exit('enough') was called during the training." in left.error.message
    assert f"Cell [{left.error.cell}], line {left.error.line}, in visit" in left.error.traceback
    stopped = found["stop"].detail()
    assert (stopped.state, stopped.restarts, stopped.batches) == (TrialState.COMPLETED, 0, 5)
    assert _batches(found["stop"]) == [1, 2, 3, 4, 5]
    assert found["stop"].checkpoints[-1].batch == 5


def test_kill_ends_the_processes_too(kernel: Kernel, cluster: Cluster, gate: Gate) -> None:
    kernel.run(PARENT)
    variables = {"environment_variables": ["FAVOURITE_COLOUR=green"]}
    call = f"configuration(hyperparameters=settings, environment={variables})"
    number = kernel.submit_with(f"experiment = det.experimental.create(Parent, {call})", port=gate.port)
    experiment = cluster.attach(number)
    visitor = gate.next()
    processes = [psutil.Process(visitor.pid), psutil.Process(int(visitor.text))]
    experiment.kill()
    assert experiment.wait(timeout=PATIENCE).state is ExperimentState.CANCELED
    _, alive = psutil.wait_procs(processes, timeout=PATIENCE)
    assert alive == []
    assert [trial.state for trial in experiment.trials] == [TrialState.CANCELED]
    assert _batches(experiment.trials[0])[:3] == [1, 2, 3]
    lines = [line.text for line in experiment.logs()]
    assert lines.count("the colour is green") == lines.count("to standard error") == 5
    visitor.line.close()


@pytest.mark.long
def test_a_search_of_three_trials_on_two_slots(kernel: Kernel, cluster: Cluster, gate: Gate) -> None:
    kernel.run("def space(port): return {'lr': det.Log(-3, -1), 'stops': '2', 'port': port}")
    searcher = {"name": "random", "metric": "val_loss", "max_length": {"epochs": 3}, "max_trials": 3}
    call = f"configuration(hyperparameters=space({gate.port}), searcher={json.dumps(searcher)})"
    experiment = cluster.attach(kernel.submit(f"experiment = det.experimental.create(Digits, {call})"))
    visitors = [gate.next(), gate.next()]
    states = [trial.state for trial in experiment.trials]
    assert states == [TrialState.RUNNING] * 2 + [TrialState.QUEUED]
    slots = connect(start=False).call(routes.GET_MASTER).slots
    assert {slot.trial_id for slot in slots} == {trial.id for trial in experiment.trials[:2]}
    for visitor in visitors:
        visitor.go()
    gate.next().go()
    assert experiment.wait(timeout=PATIENCE).state is ExperimentState.COMPLETED
    trials = experiment.trials
    assert [trial.state for trial in trials] == [TrialState.COMPLETED] * 3
    assert len({trial.hparams["lr"] for trial in trials}) == 3
    assert all([row["batch"] for row in trial.metrics()] == list(range(1, BATCHES + 1)) for trial in trials)
    best = min(trial.best_validation or 9.0 for trial in trials)
    assert experiment.best_trial.best_validation == best
    assert experiment.top_checkpoint().metrics["val_loss"] == best
