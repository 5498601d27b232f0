"""A framework that another package brings: it trains here and on the cluster, survives a kill, and loads back."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from faults import (
    GATE_CELL,
    Cluster,
    Gate,
    Kernel,
    assert_complete_rows,
    checkpoint_at,
    ended,
    running_cluster,
    running_kernel,
)
from installed_toy import install_toy

from det_native.schema.states import ExperimentState

pytestmark = pytest.mark.slow

BATCHES = 12
SETUP = """
import det_native as det
from toy_framework.trial import ToyTrial
"""
TRIAL = """
class Counting(ToyTrial):
    def train_batch(self, batch_idx):
        if str(batch_idx + 1) in self.context.get_hparam("stops").split():
            gate(self.context.get_hparam("port"), batch_idx + 1)
        return super().train_batch(batch_idx)
"""
CONFIG = f"""
def configuration(**settings):
    return {{
        "hyperparameters": {{"global_batch_size": 1, "stops": "", "port": 0}} | settings,
        "searcher": {{"name": "single", "metric": "val_loss", "max_length": {{"batches": {BATCHES}}}}},
        "scheduling_unit": 1,
        "checkpoint_policy": "none",
        "min_validation_period": {{"batches": 5}},
        "min_checkpoint_period": {{"batches": 3}},
        "reproducibility": {{"experiment_seed": 11}},
    }}
"""
STATE = """
def state(experiment):
    trial = experiment.trials[0].checkpoints[-1].load()
    return [type(trial).__name__, trial.count, trial.steps]
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the framework is installed."""
    return install_toy(tmp_path_factory.mktemp("toy"))


@pytest.fixture(scope="module")
def toy_cluster(installed: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A master of its own: the framework is on the import path of kernel, master and workers."""
    with pytest.MonkeyPatch.context() as patch:
        before = os.environ.get("PYTHONPATH")
        packages = str(installed)
        patch.setenv("PYTHONPATH", packages if before is None else f"{packages}{os.pathsep}{before}")
        with running_cluster(tmp_path_factory.mktemp("toy-cluster"), "toy") as started:
            yield started


@pytest.fixture(scope="module")
def kernel(toy_cluster: Cluster) -> Iterator[Kernel]:
    """A kernel beside that master."""
    with running_kernel(toy_cluster, "notebook") as opened:
        yield opened


@pytest.fixture
def cluster(toy_cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    """The master, which is also the one that handles in this process find."""
    monkeypatch.setenv("DET_HOME", str(toy_cluster.home.path))
    with toy_cluster.clearing() as cleared:
        yield cleared


def test_it_trains_here_and_there_survives_a_kill_and_loads_back(kernel: Kernel, cluster: Cluster, gate: Gate) -> None:
    for cell in (SETUP, GATE_CELL, CONFIG, TRIAL, STATE):
        kernel.run(cell)
    kernel.run("here = det.experimental.create(Counting, configuration(), local=True)")
    there = cluster.attach(kernel.submit("experiment = det.experimental.create(Counting, configuration())"))
    call = f'experiment = det.experimental.create(Counting, configuration(stops="8", port={gate.port}))'
    killed = cluster.attach(kernel.submit(call))
    visitor = gate.next()
    checkpoint_at(killed, 6)
    visitor.die(signal.SIGKILL)
    gate.next().go()
    for experiment, restarts in ((there, 0), (killed, 1)):
        assert ended(experiment, ExperimentState.COMPLETED).restarts == restarts
        assert_complete_rows(experiment, BATCHES)
    assert "at batch 6." in str(killed.logs())

    name, count, steps = kernel.value("state(here)")
    assert (name, len(steps)) == ("Counting", 4)
    assert count > sum(steps)
    for number in (there.id, killed.id):
        assert kernel.value(f"state(det.attach({number}))") == [name, count, steps]
    assert killed.detail().framework == "toy"
    kernel.run("folder = experiment.trials[0].checkpoints[-1].download()")
    manifest = kernel.value("json.loads(__import__('pathlib').Path(folder, 'manifest.json').read_text())")
    assert (manifest["framework"], manifest["framework_version"]) == ("toy", "1.0")


OWN_PROCESS = """
import os
from dataclasses import replace
from det_native.frameworks import get_framework, registry

registry._descriptions["toy"] = replace(get_framework("toy"), own_process=True)

class Telling(ToyTrial):
    def train_batch(self, batch_idx):
        if batch_idx == 0:
            print(f"process {os.getpid()}")
        return super().train_batch(batch_idx)
"""


@pytest.mark.long
def test_a_framework_gets_a_process_of_its_own_for_a_local_run_if_it_asks(kernel: Kernel, cluster: Cluster) -> None:
    for cell in (SETUP, CONFIG, STATE):
        kernel.run(cell)
    kernel.run("here = det.experimental.create(ToyTrial, configuration(), local=True)")
    kernel.run(OWN_PROCESS)
    for test, batches in ((False, BATCHES), (True, 1)):
        done = kernel.run(f"there = det.experimental.create(Telling, configuration(), local=True, test={test})")
        assert "process " in done.text
        assert f"process {kernel.value('os.getpid()')}" not in done.text
        assert kernel.value("[str(there.state), there.trials[0].detail().batches]") == ["Completed", batches]
        if not test:
            assert kernel.value("state(there)")[1:] == kernel.value("state(here)")[1:]


def test_nothing_of_another_framework_is_imported_for_it(kernel: Kernel) -> None:
    assert kernel.value("[name for name in ('torch', 'tensorflow') if name in __import__('sys').modules]") == []


@pytest.mark.long
def test_an_error_of_its_code_has_cell_and_line(kernel: Kernel, cluster: Cluster) -> None:
    kernel.run("import det_native as det\nfrom toy_framework.trial import ToyTrial")
    kernel.run(CONFIG)
    kernel.run("class Failing(ToyTrial):\n    def train_batch(self, batch_idx):\n        return [][batch_idx]")
    failed = cluster.attach(kernel.submit("experiment = det.experimental.create(Failing, configuration())"))
    ended(failed, ExperimentState.ERROR)
    error = failed.detail().error
    assert error is not None
    assert (error.type, error.line) == ("IndexError", 3)


@pytest.mark.long
def test_a_class_that_it_refuses_is_refused_in_the_kernel(kernel: Kernel) -> None:
    kernel.run("class Wrong(ToyTrial):\n    train_batch = None")
    for place in ("True", "False"):
        done = kernel.run(f"det.experimental.create(Wrong, configuration(), local={place})", fails=True)
        assert done.error == "TrialDefinitionError: Wrong.train_batch must be a method."


@pytest.mark.long
def test_a_package_replaced_between_two_runs_of_a_trial_is_told(
    kernel: Kernel, cluster: Cluster, gate: Gate, installed: Path
) -> None:
    for cell in (SETUP, GATE_CELL, CONFIG, TRIAL, STATE):
        kernel.run(cell)
    call = f'experiment = det.experimental.create(Counting, configuration(stops="8", port={gate.port}))'
    experiment = cluster.attach(kernel.submit(call))
    visitor = gate.next()
    checkpoint_at(experiment, 6)
    source = installed / "toy_framework" / "__init__.py"
    before = source.read_text()
    new = installed / "new"
    new.write_text(before.replace('"1.0"', '"2.0.1"'))
    new.replace(source)  # as installers do; it changes the folder, too
    os.utime(installed, (1, 1))
    try:
        visitor.die(signal.SIGKILL)
        gate.next().go()
        assert ended(experiment, ExperimentState.COMPLETED).restarts == 1
    finally:
        source.write_text(before)
        os.utime(installed)
    assert_complete_rows(experiment, BATCHES)
    said = "The training continues after batch 6 with toy_framework 2.0.1, where it was begun with toy_framework 1.0"
    assert said in experiment.trials[0].detail().warning
    assert str(experiment.logs()).count(said) == 1
