"""An EstimatorTrial: with ``local=True`` and on the cluster, killed, and its SavedModels used elsewhere."""

from __future__ import annotations

import signal
import subprocess
import sys
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

from det_native.schema.states import ExperimentState

pytestmark = pytest.mark.slow

BATCHES = 12
SETUP = """
import det_native as det
import numpy as np
import tensorflow as tf

generator = np.random.default_rng(5)
records = generator.normal(size=(60, 4)).astype("float32")
labels = records[:, :3].argmax(1)
"""
TRIAL = """
class Stops(tf.estimator.SessionRunHook):
    def __init__(self, context):
        self.context = context

    def after_create_session(self, session, coord):
        self.batch = int(session.run(tf.compat.v1.train.get_global_step()))

    def before_run(self, run_context):
        self.batch += 1
        if str(self.batch) in self.context.get_hparam("stops").split():
            gate(self.context.get_hparam("port"), self.batch)


class Iris(det.estimator.EstimatorTrial):
    def build_estimator(self):
        print("eager:", tf.executing_eagerly(), "V2 variables:", tf.compat.v1.resource_variables_enabled())
        optimizer = self.context.wrap_optimizer(tf.compat.v1.train.AdagradOptimizer(0.1))
        columns = [tf.compat.v1.feature_column.numeric_column("x", shape=4)]
        return tf.compat.v1.estimator.DNNClassifier([8], columns, n_classes=3, optimizer=optimizer, dropout=0.2)

    def data(self):
        return self.context.wrap_dataset(tf.data.Dataset.from_tensor_slices(({"x": records}, labels)))

    def build_train_spec(self):
        size = self.context.get_per_slot_batch_size()
        return tf.estimator.TrainSpec(lambda: self.data().shuffle(60).batch(size), hooks=[Stops(self.context)])

    def build_validation_spec(self):
        return tf.estimator.EvalSpec(lambda: self.data().batch(20), steps=None)

    def build_serving_input_receiver_fns(self) -> dict[str, det.estimator.ServingInputReceiverFn]:
        given = {"x": tf.compat.v1.placeholder(tf.float32, [None, 4])}
        return {"raw": tf.estimator.export.build_raw_serving_input_receiver_fn(given)}
"""
CONFIG = f"""
def configuration(**settings):
    return {{
        "hyperparameters": {{"global_batch_size": 10, "stops": "", "port": 0}} | settings,
        "searcher": {{"name": "single", "metric": "loss", "max_length": {{"batches": {BATCHES}}}}},
        "scheduling_unit": 1,
        "checkpoint_policy": "none",
        "min_validation_period": {{"batches": 5}},
        "min_checkpoint_period": {{"batches": 3}},
        "reproducibility": {{"experiment_seed": 11}},
    }}
"""
ANSWERS = """
import io, logging

def answers(experiment):
    handler = logging.StreamHandler(warnings := io.StringIO())
    tf.get_logger().addHandler(handler)
    served = experiment.trials[0].checkpoints[-1].load().signatures["predict"]
    tf.get_logger().removeHandler(handler)
    assert "reference variable" not in warnings.getvalue(), warnings.getvalue()
    return served(x=tf.constant(records[:3]))["probabilities"].numpy().tolist()
"""
ELSEWHERE = """
import sys
import tensorflow as tf
assert not any(name.startswith(("det_native", "det_harness")) for name in sys.modules)
served = tf.saved_model.load(sys.argv[1]).signatures["predict"]
print(served(x=tf.zeros((2, 4)))["class_ids"].shape)
"""


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    """A master of its own, which is also the one that handles in this process find."""
    with running_cluster(tmp_path, "estimator") as started:
        monkeypatch.setenv("DET_HOME", str(started.home.path))
        yield started


@pytest.fixture
def kernel(cluster: Cluster) -> Iterator[Kernel]:
    """A kernel beside that master."""
    with running_kernel(cluster, "notebook", SETUP, GATE_CELL, CONFIG, TRIAL, ANSWERS) as opened:
        yield opened


@pytest.mark.long
def test_it_trains_here_and_there_survives_a_kill_and_serves(
    kernel: Kernel, cluster: Cluster, gate: Gate, tmp_path: Path
) -> None:
    done = kernel.run("here = det.experimental.create(Iris, configuration(), local=True)")
    assert "eager: False V2 variables: False" in done.text
    assert kernel.value("tf.executing_eagerly()")
    there = cluster.attach(kernel.submit("experiment = det.experimental.create(Iris, configuration())"))
    call = f'experiment = det.experimental.create(Iris, configuration(stops="8", port={gate.port}))'
    killed = cluster.attach(kernel.submit(call))
    visitor = gate.next()
    checkpoint_at(killed, 6)
    visitor.die(signal.SIGKILL)
    gate.next().go()
    for experiment, restarts in ((there, 0), (killed, 1)):
        assert ended(experiment, ExperimentState.COMPLETED).restarts == restarts
        assert_complete_rows(experiment, BATCHES)
    rows = kernel.value("here.trials[0].metrics()")
    assert [row["batch"] for row in rows] == list(range(1, BATCHES + 1))
    assert [row["loss"] for row in killed.trials[0].metrics()] == [row["loss"] for row in rows]

    expected = kernel.value("answers(here)")
    assert expected[0] == pytest.approx(kernel.value(f"answers(det.attach({there.id}))")[0], abs=0)
    assert expected == kernel.value(f"answers(det.attach({killed.id}))")
    folder = kernel.folder / kernel.value("str(experiment.trials[0].checkpoints[-1].download())")
    names = {path.name for path in folder.iterdir()}
    assert {"checkpoint", "graph.pbtxt", f"model.ckpt-{BATCHES}.index"} <= names
    (saved,) = (folder / "raw").iterdir()
    command = [sys.executable, "-c", ELSEWHERE, str(saved)]
    assert subprocess.run(command, check=True, capture_output=True, text=True, cwd=tmp_path).stdout.strip() == "(2, 1)"
    command = [str(Path(sys.executable).with_name("saved_model_cli")), "show", "--dir", str(saved), "--all"]
    assert "probabilities" in subprocess.run(command, check=True, capture_output=True, text=True, cwd=tmp_path).stdout


NAMED = """
class Named(Iris):
    def build_estimator(self):
        optimizer = self.context.wrap_optimizer(tf.compat.v1.train.AdagradOptimizer(0.1))
        columns = [tf.compat.v1.feature_column.numeric_column("x", shape=4)]
        return tf.compat.v1.estimator.DNNClassifier([8], columns, "my_model", n_classes=3, optimizer=optimizer)
"""


@pytest.mark.soak
def test_the_files_of_a_named_model_dir_are_there_and_here(kernel: Kernel, cluster: Cluster) -> None:
    kernel.run(NAMED)
    there = cluster.attach(kernel.submit("experiment = det.experimental.create(Named, configuration())"))
    kernel.run("here = det.experimental.create(Named, configuration(), local=True)")
    wanted = {"my_model/checkpoint", "my_model/graph.pbtxt", f"my_model/model.ckpt-{BATCHES}.index"}
    assert wanted <= set(kernel.value("here.artifacts.paths"))
    latest = kernel.value("tf.train.latest_checkpoint('my_model')")
    assert latest == f"my_model/model.ckpt-{BATCHES}"
    ended(there, ExperimentState.COMPLETED)
    paths = there.artifacts.paths
    assert wanted <= set(paths)
    assert any(path.startswith("my_model/events.") for path in paths)
    assert any(path.startswith("my_model/eval/events.") for path in paths)


NATIVE = """
context = det.experimental.estimator.init(configuration(), local={local})
optimizer = context.wrap_optimizer(tf.compat.v1.train.AdagradOptimizer(0.1))
columns = [tf.compat.v1.feature_column.numeric_column("x", shape=4)]
estimator = tf.compat.v1.estimator.DNNClassifier([8], columns, n_classes=3, optimizer=optimizer)


def data(size):
    return context.wrap_dataset(tf.data.Dataset.from_tensor_slices(({{"x": records}}, labels))).batch(size)


def receiver():
    given = {{"x": tf.compat.v1.placeholder(tf.float32, [None, 4])}}
    return tf.estimator.export.ServingInputReceiver(given, given)


exporters = [tf.estimator.BestExporter("best", receiver), tf.estimator.FinalExporter("last", receiver)]
context.serving_input_receiver_fns = {{"raw": receiver}}
result = context.train_and_evaluate(
    estimator,
    tf.estimator.TrainSpec(lambda: data(10), max_steps=12),
    tf.estimator.EvalSpec(lambda: data(20), steps=None, exporters=exporters),
)
"""


@pytest.mark.long
def test_train_and_evaluate_runs_here_and_there(kernel: Kernel, cluster: Cluster) -> None:
    kernel.run(NATIVE.format(local=True))
    metrics, exports = kernel.value("[result[0], [each.decode() for each in result[1]]]")
    rows = kernel.value("context.experiment.trials[0].metrics('validation')")
    assert [row["batch"] for row in rows] == [5, 10, 12]
    assert metrics["loss"] == rows[-1]["loss"]
    assert [Path(each).parent.name for each in exports] == ["best", "last"]
    kernel.run(f"served = tf.saved_model.load({exports[1]!r}).signatures['predict']")
    assert kernel.value("served(x=tf.constant(records[:2]))['class_ids'].shape.as_list()") == [2, 1]
    kernel.run("experiment, = [context.experiment]")
    assert len(kernel.value("answers(experiment)")) == 3
    there = cluster.attach(kernel.submit(NATIVE.format(local=False) + "experiment = result"))
    ended(there, ExperimentState.COMPLETED)
    assert there.trials[0].metrics("validation")[-1]["loss"] == metrics["loss"]


@pytest.mark.long
def test_evaluations_come_with_the_saves_of_the_run_config_as_seldom_as_the_spec_says(kernel: Kernel) -> None:
    text = NATIVE.format(local=True).replace("n_classes=3, ", "n_classes=3, config=config, ")
    text = text.replace("exporters=exporters", "start_delay_secs=0, throttle_secs={throttle}")
    silent = "{name: part for name, part in configuration().items() if name != 'min_validation_period'}"
    kernel.run("config = tf.estimator.RunConfig(save_checkpoints_steps=4)")
    for throttle, expected in ((0, [4, 8, 12]), (600, [4, 12])):
        kernel.run(text.replace("configuration()", silent, 1).replace("{throttle}", str(throttle)))
        rows = kernel.value("context.experiment.trials[0].metrics('validation')")
        assert [row["batch"] for row in rows] == expected


@pytest.mark.long
def test_two_slots_train(kernel: Kernel, cluster: Cluster) -> None:
    two = 'configuration() | {"resources": {"slots_per_trial": 2}, "optimizations": {"aggregation_frequency": 2}}'
    there = cluster.attach(kernel.submit(f"experiment = det.experimental.create(Iris, {two})"))
    assert ended(there, ExperimentState.COMPLETED).restarts == 0
    assert_complete_rows(there, BATCHES)
    assert str(there.logs()).count("eager: False") == 2
    names = {path.name for path in (cluster.home.path / "tensorboard").rglob("events.out.tfevents.*")}
    assert len(names) >= 2
