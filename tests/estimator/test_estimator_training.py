"""What an estimator trains by: premade and custom ones, hooks, metrics, data from any batch, SavedModels."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from det_harness.trial.user_files import UserFiles
from estimator_runs import BATCH_SIZE, RECORDS, Run, Small, X, Y, trial

import det_native as det
from det_native.errors import CheckpointError, DivergedError, StorageError, TrialDefinitionError
from det_native.estimator import EstimatorExperimentalContext, EstimatorTrialContext, MetricReducer, RunHook
from det_native.horovod import HorovodContext

pytestmark = pytest.mark.slow


def wrapped(context: Any, learning_rate: float = 0.1) -> Any:
    return context.wrap_optimizer(tf.keras.optimizers.legacy.Adagrad(learning_rate))


COLUMNS = [tf.feature_column.numeric_column("x", shape=3)]
PREMADE = {
    "dnn": lambda context: tf.estimator.DNNClassifier([4], COLUMNS, "dnn", 3, optimizer=wrapped(context)),
    "linear": lambda context: tf.estimator.LinearClassifier(COLUMNS, "linear", 3, optimizer=wrapped(context)),
    "baseline": lambda context: tf.estimator.BaselineClassifier("baseline", 3, optimizer=wrapped(context)),
    "regression": lambda context: tf.estimator.DNNRegressor(
        [4], COLUMNS, "regression", optimizer=lambda: wrapped(context)
    ),
}


@pytest.mark.parametrize("kind", [pytest.param(kind, marks=[pytest.mark.long] * (kind != "dnn")) for kind in PREMADE])
def test_premade_estimators_train(kind: str, tmp_path: Path) -> None:
    def build_train_spec(self: Any) -> Any:
        self.context.wrap_optimizer(lambda: None)
        return Small.build_train_spec(self)

    built = trial(build_estimator=lambda self: PREMADE[kind](self.context), build_train_spec=build_train_spec)
    run = Run(built, tmp_path, batches=8)
    run.run()
    assert [row.batch for row in run.reporter.training_rows] == list(range(1, 9))
    assert run.losses[7] < run.losses[3] or kind == "baseline"
    assert {"loss", "average_loss", "global_step"} <= set(run.validations[0])
    assert ("accuracy" in run.validations[0]) == (kind != "regression")


def test_max_steps_has_no_effect_and_steps_has(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    def metrics(self: Any, labels: Any, logits: Any) -> Any:
        return {"batches": self.context.experimental.make_metric(logits, len, np.int64)}

    def build_train_spec(self: Any) -> Any:
        return tf.estimator.TrainSpec(lambda: self.data().batch(BATCH_SIZE), max_steps=1)

    def endless(self: Any) -> Any:
        return tf.estimator.EvalSpec(lambda: self.data().repeat().batch(BATCH_SIZE), steps=3)

    run = Run(trial(metrics=metrics, build_train_spec=build_train_spec), tmp_path / "all")
    assert run.run().batches == 3
    assert run.validations[0]["batches"] == RECORDS / BATCH_SIZE
    assert [record.message for record in caplog.records if "max_steps=1 has no effect" in record.message]
    run = Run(trial(metrics=metrics, build_validation_spec=endless), tmp_path / "three")
    run.run()
    assert run.validations[0]["batches"] == 3


class MyAvgMetricReducer(MetricReducer):
    """As the document has it."""

    def __init__(self) -> None:
        self.sum, self.counts = 0.0, 0

    def accumulate(self, metric: Any) -> Any:
        self.sum += metric["values"].sum()
        self.counts += metric["values"].size
        return self.sum, self.counts

    def cross_slot_reduce(self, per_slot_metrics: list[Any]) -> Any:
        sums, counts = zip(*per_slot_metrics, strict=True)
        return sum(sums) / sum(counts)


def test_metrics_of_ones_own_are_right_in_successive_evaluations(tmp_path: Path) -> None:
    reducer = MyAvgMetricReducer()
    known: list[Any] = []

    def metrics(self: Any, labels: Any, logits: Any) -> Any:
        make = self.context.experimental.make_metric
        return {
            "tensor": make(logits, lambda all_: np.mean(np.concatenate(all_)), np.float32),
            "list": make([logits, labels], lambda all_: sum(len(pair[1]) for pair in all_), "int64"),
            "dictionary": make({"values": logits}, reducer, np.float64),
            "known": tf.compat.v1.metrics.mean(logits),
            "keep": make(logits, lambda all_: known.append(np.concatenate(all_).mean()) or 0.0, np.float32),
        }

    run = Run(trial(metrics=metrics), tmp_path, batches=2, min_validation_period={"batches": 1})
    run.run()
    first, second = run.validations
    for found, mean in ((first, known[0]), (second, known[1])):
        assert found["tensor"] == pytest.approx(mean)
        assert found["dictionary"] == pytest.approx(mean, rel=1e-5)
        assert found["known"] == pytest.approx(mean, rel=1e-5)
        assert found["list"] == RECORDS
    assert first["tensor"] != second["tensor"]


def test_metrics_are_put_together_across_ranks() -> None:
    made = det.estimator.EstimatorExperimentalContext.from_config({})
    made.metrics.gather = lambda values: [values, [(30.0, 10)], [None]]
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        value, update = made.make_metric({"values": tf.constant([1.0, 2.0])}, MyAvgMetricReducer(), np.float32)
        session.run(update)
        made.metrics.end_evaluation()
        assert session.run(value) == pytest.approx(33 / 12)
    made.metrics.begin_evaluation()
    made.metrics.gather = lambda values: [values, [[np.array([5.0])]], [None]]
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        value, update = made.make_metric(tf.constant([1.0, 2.0]), lambda all_: np.hstack(all_).max(), np.float32)
        session.run(update)
        made.metrics.end_evaluation()
        assert session.run(value) == 5.0


@pytest.mark.parametrize(
    ("metric", "reducer", "told"),
    [
        ([[1.0], [2.0]], len, "structures within structures"),
        ({"a": {"b": 1.0}}, len, "structures within structures"),
        (object(), len, "must be a tensor, a list of tensors or a dictionary"),
        (1.0, MyAvgMetricReducer, r"not <class .*Reducer'>; give MyAvgMetricReducer\(\)"),
        (1.0, "mean", "must be a function or a det.estimator.MetricReducer, not 'mean'"),
    ],
)
def test_wrong_metrics_are_told(metric: Any, reducer: Any, told: str) -> None:
    context = EstimatorExperimentalContext.from_config({})
    with tf.Graph().as_default(), pytest.raises(TrialDefinitionError, match=told):
        context.make_metric(metric, reducer, np.float32)


def test_an_error_in_a_reducer_comes_out_as_it_is(tmp_path: Path) -> None:
    error = ValueError("in the reducer")

    def fail(batches: Any) -> Any:
        raise error

    def metrics(self: Any, labels: Any, logits: Any) -> Any:
        return {"failing": self.context.experimental.make_metric(logits, fail, np.float32)}

    with pytest.raises(ValueError, match="in the reducer") as caught:
        Run(trial(metrics=metrics), tmp_path).run()
    assert caught.value is error


def test_run_hooks_are_told_of_checkpoints_and_the_end(tmp_path: Path) -> None:
    told: list[tuple[str, Any]] = []

    class MyHook(RunHook):
        def __init__(self, context: Any, metadata: str) -> None:
            self._context = context
            self._metadata = metadata

        def before_run(self, run_context: Any) -> None:
            told.append(("batch", None))

        def on_checkpoint_end(self, checkpoint_dir: str) -> None:
            with open(os.path.join(checkpoint_dir, "metadata.txt"), "w") as fp:
                fp.write(self._metadata)
            told.append(("end", sorted(path.name for path in Path(checkpoint_dir).glob("model.ckpt-*.index"))))

        def on_checkpoint_load(self, checkpoint_dir: str) -> None:
            told.append(("load", Path(checkpoint_dir, "metadata.txt").read_text()))

        def on_trial_close(self) -> None:
            told.append(("close", None))

    run = Run(trial(hooks=lambda self: [MyHook(self.context, "my_metadata")]), tmp_path)
    run.run(stop_after=2)
    batch, close = ("batch", None), ("close", None)
    assert told == [batch, batch, ("end", ["model.ckpt-2.index"]), close]
    assert (run.folder / "metadata.txt").read_text() == "my_metadata"
    told.clear()
    run.run()
    assert told == [("load", "my_metadata"), batch, ("end", ["model.ckpt-3.index"]), close]
    told.clear()

    def fail(self: Any, x: Any) -> Any:
        raise RuntimeError("broken")

    with pytest.raises(RuntimeError, match="broken"):
        Run(trial(hidden=fail, hooks=lambda self: [MyHook(self.context, "")]), tmp_path / "broken").run()
    assert told == [close]


def test_a_session_hook_that_requests_a_stop_ends_the_training_with_a_checkpoint(tmp_path: Path) -> None:
    class Stop(tf.estimator.SessionRunHook):  # type: ignore[misc]
        def after_run(self, run_context: Any, run_values: Any) -> None:
            run_context.request_stop()

    run = Run(trial(hooks=lambda self: [Stop()]), tmp_path)
    outcome = run.run()
    assert (outcome.batches, outcome.stopped) == (1, True)
    assert run.reporter.checkpoints[-1][1].batch == 1


@pytest.mark.parametrize(
    ("at", "expected"),
    [
        (1, (1, True)),
        *(pytest.param(*case, marks=pytest.mark.long) for case in ((0, (0, True)), (2, (2, True)), (3, (3, False)))),
    ],
)
def test_a_hook_of_the_eval_spec_that_requests_a_stop_ends_the_training(
    at: int, expected: tuple[int, bool], tmp_path: Path
) -> None:
    class Stop(tf.estimator.SessionRunHook):  # type: ignore[misc]
        def begin(self) -> None:
            self.step = tf.compat.v1.train.get_global_step()

        def before_run(self, run_context: Any) -> Any:
            return tf.estimator.SessionRunArgs(self.step)

        def after_run(self, run_context: Any, run_values: Any) -> None:
            if run_values.results == at:
                run_context.request_stop()

    def build_validation_spec(self: Any) -> Any:
        return tf.estimator.EvalSpec(lambda: self.data().batch(BATCH_SIZE), steps=None, hooks=[Stop()])

    run = Run(
        trial(build_validation_spec=build_validation_spec),
        tmp_path,
        min_validation_period={"batches": 1},
        perform_initial_validation=True,
    )
    outcome = run.run()
    assert (outcome.batches, outcome.stopped) == expected
    assert [row.batch for row in run.reporter.validation_rows] == list(range(expected[0] + 1))
    assert run.reporter.checkpoints[-1][1].batch == expected[0] if expected[0] else not run.reporter.checkpoints


@pytest.mark.long
@pytest.mark.parametrize("where", ["map", "generator", "small shuffle"])
def test_data_go_on_at_the_very_batch_whatever_can_be_saved_of_them(
    where: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def data(self: Any) -> Any:
        if where == "generator":
            signature = ({"x": tf.TensorSpec([3])}, tf.TensorSpec([], tf.int64))
            rows = lambda: (({"x": x}, y) for x, y in zip(X, Y, strict=True))  # noqa: E731
            return self.context.wrap_dataset(tf.data.Dataset.from_generator(rows, output_signature=signature))
        found = Small.data(self)
        if where == "map":
            return found.map(lambda x, y: ({"x": x["x"] + tf.random.uniform([], seed=3)}, y))
        return found.shuffle(6).prefetch(2)  # ends its passes before the training does

    whole, parts = Run(trial(data=data), tmp_path / "whole", 9), Run(trial(data=data), tmp_path / "parts", 9)
    whole.run()
    for end in (2, 3, 6, None):
        parts.run(stop_after=end)
    assert [each.batch for _, each in parts.reporter.checkpoints] == [2, 3, 6, 9]
    assert parts.losses == whole.losses
    assert len(set(whole.losses)) == 9
    said = any("its batches are read again from the first" in record.message for record in caplog.records)
    assert said == (where != "small shuffle")


def test_random_operations_go_on_where_they_were(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    def hidden(self: Any, x: Any) -> Any:
        x = x + tf.random.normal(tf.shape(x)) + tf.random.truncated_normal(tf.shape(x)) + tf.random.uniform(tf.shape(x))
        return tf.nn.dropout(x, 0.5) * tf.cast(tf.random.uniform([], 1, 9, tf.int32), tf.float32)

    whole, parts = Run(trial(hidden=hidden), tmp_path / "whole"), Run(trial(hidden=hidden), tmp_path / "parts")
    whole.run()
    parts.run(stop_after=1)
    parts.run()
    assert parts.losses == whole.losses
    assert not any("start anew" in record.message for record in caplog.records)

    def in_a_loop(self: Any, x: Any) -> Any:
        return tf.while_loop(lambda i, x: i < 2, lambda i, x: (i + 1, x * tf.random.uniform([])), (0, x))[1]

    Run(trial(hidden=in_a_loop), tmp_path / "loop", batches=1).run()
    assert any("start anew where a training continues" in record.message for record in caplog.records)


def test_a_loss_that_is_not_a_number_ends_the_training(tmp_path: Path) -> None:
    def loss(self: Any, labels: Any, logits: Any) -> Any:
        return tf.reduce_mean(tf.math.log(-tf.abs(logits)))

    with pytest.raises(DivergedError, match=r"became NaN at batch 1"):
        Run(trial(loss=loss), tmp_path, nan="stop").run()


def test_not_a_number_of_a_side_metric_is_recorded(tmp_path: Path) -> None:
    def metrics(self: Any, labels: Any, logits: Any) -> Any:
        tf.compat.v1.summary.scalar("side", tf.math.log(-1.0))
        return {"f1": tf.compat.v1.metrics.mean(tf.math.log(-tf.ones([1])))}

    run = Run(trial(metrics=metrics), tmp_path, batches=2)
    run.run()
    assert all(np.isnan(found["f1"]) for found in run.validations)
    assert not any(np.isnan(found["loss"]) for found in run.validations)


def serving(self: Any) -> Any:
    def receiver() -> Any:
        given = {"x": tf.compat.v1.placeholder(tf.float32, [None, 3])}
        return tf.estimator.export.ServingInputReceiver(given, given)

    return {"raw": receiver, "other": receiver}


def test_what_is_no_number_is_recorded_of_an_evaluation(tmp_path: Path) -> None:
    def metrics(self: Any, labels: Any, logits: Any) -> Any:
        nothing = tf.no_op()
        return {
            "matrix": (tf.constant([[1.0, np.nan], [0.0, 2.0]]), nothing),
            "note": (tf.constant("cat"), nothing),
            "accuracy": tf.compat.v1.metrics.accuracy(labels, tf.argmax(logits, 1)),
        }

    run = Run(trial(metrics=metrics), tmp_path)
    run.run()
    [row] = run.validations
    assert np.array_equal(row["matrix"], [[1.0, np.nan], [0.0, 2.0]], equal_nan=True)
    assert (row["note"], type(row["accuracy"])) == ("cat", float)


def test_saved_models_load_back(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    from det_harness.frameworks.estimator.saved_models import load_saved_models

    run = Run(trial(build_serving_input_receiver_fns=serving), tmp_path)
    run.run()
    caplog.clear()
    loaded = load_saved_models(run.folder)
    assert [record.message for record in caplog.records if record.name == "tensorflow"] == []
    assert sorted(loaded) == ["other", "raw"]
    answers = [each.signatures["serving_default"](tf.constant(X[:2]))["output"].numpy() for each in loaded.values()]
    assert (answers[0] == answers[1]).all()
    # TensorFlow's own files: what trains elsewhere goes on from them.
    assert tf.train.latest_checkpoint(str(run.folder)).endswith("model.ckpt-3")
    with pytest.raises(CheckpointError, match=r"no SavedModel: define build_serving_input_receiver_fns\(\)"):
        load_saved_models(tmp_path)


def test_a_checkpoint_of_other_variables_is_told(tmp_path: Path) -> None:
    run = Run(Small, tmp_path, batches=5)
    run.run(stop_after=2)
    run.trial_class = trial(hidden=lambda self, x: tf.keras.layers.Dense(2)(x))
    with pytest.raises(CheckpointError, match="does not fit the estimator of Changed: its variables have changed"):
        run.run()


def test_contexts_take_an_environment_and_how_gradients_are_exchanged(tmp_path: Path) -> None:
    environment = Run(Small, tmp_path).environment
    assert Small.trial_context_class is EstimatorTrialContext
    context = EstimatorTrialContext(environment, HorovodContext(aggregation_frequency=2))
    assert context.env.config["optimizations"]["aggregation_frequency"] == 2
    assert isinstance(context.experimental, EstimatorExperimentalContext)
    assert context.distributed.get_size() == 1
    assert det.estimator.MetricsReducer is MetricReducer


def test_it_begins_with_the_weights_of_another_trial_and_nothing_else(tmp_path: Path) -> None:
    first = Run(Small, tmp_path / "first", batches=6)
    first.run()
    begun: list[Any] = []

    class Look(tf.estimator.SessionRunHook):  # type: ignore[misc]
        def after_create_session(self, session: Any, coord: Any) -> None:
            variables = tf.compat.v1.global_variables()
            begun.append({variable.name: session.run(variable) for variable in variables})

    second = Run(trial(hooks=lambda self: [Look()]), tmp_path / "second", batches=2)
    second.begin_with(first)
    second.run(stop_after=1)
    [at_first] = begun
    saved = tf.train.load_checkpoint(str(first.folder))
    assert np.array_equal(at_first["answer/kernel:0"], saved.get_tensor("answer/kernel"))
    assert at_first["global_step:0"] == 0
    assert not at_first["answer/kernel/Adam:0"].any()
    assert saved.get_tensor("answer/kernel/Adam").any()
    second.run()  # goes on from its own checkpoint
    assert begun[1]["global_step:0"] == 1
    assert [row.batch for row in second.reporter.training_rows] == [1, 2]


@pytest.mark.long
@pytest.mark.parametrize("shuffle", [False, True])
def test_cached_datasets_are_written_once_and_go_on_at_the_very_record(shuffle: bool, tmp_path: Path) -> None:
    made: list[str] = []

    def cached(self: Any, kind: str) -> Any:
        experimental = self.context.experimental
        training = kind == "train"
        decorate = experimental.cache_train_dataset if training else experimental.cache_validation_dataset

        @decorate("rows", "v1", shuffle=shuffle)  # type: ignore[untyped-decorator]
        def make() -> Any:
            made.append(kind)
            return tf.data.Dataset.from_tensor_slices(({"x": X}, Y))

        return make().batch(BATCH_SIZE)

    built = trial(
        build_train_spec=lambda self: tf.estimator.TrainSpec(lambda: cached(self, "train")),
        build_validation_spec=lambda self: tf.estimator.EvalSpec(lambda: cached(self, "validation"), steps=None),
    )
    settings = {
        "data_layer": {"type": "shared_fs", "host_storage_path": str(tmp_path / "caches")},
        "min_validation_period": {"batches": 4},
    }
    whole, parts = Run(built, tmp_path / "whole", 9, **settings), Run(built, tmp_path / "parts", 9, **settings)
    whole.run()
    for end in (1, 3, 4, 6, None):
        parts.run(stop_after=end)
    assert sorted(made) == ["train", "validation"]
    assert parts.losses == whole.losses
    assert parts.validations == whole.validations
    assert len(whole.validations) == 3
    (records,) = (tmp_path / "caches").glob("*/*/train/*/records.tfrecord")
    content = bytearray(records.read_bytes())
    content[40] ^= 1
    records.write_bytes(content)
    with pytest.raises(StorageError, match=r"version 'v1' \(train\) is damaged: record 0 .* is written again"):
        Run(built, tmp_path / "damaged", 9, **settings).run()


def test_a_trial_class_may_name_a_subclass_of_what_trains_it(tmp_path: Path) -> None:
    told: list[str] = []
    usual: Any = Small.trial_controller_class

    class Telling(usual):  # type: ignore[misc]
        def run(self) -> Any:
            told.append(self.definition.name)
            return super().run()

    Run(trial(trial_controller_class=Telling), tmp_path, batches=1).run()
    assert told == ["Changed"]
    with pytest.raises(TrialDefinitionError, match=r"Changed\.trial_controller_class is None; leave it out, or set it"):
        Run(trial(trial_controller_class=None), tmp_path / "none").run()
    from det_native.keras import TFKerasTrial
    from det_native.pytorch import PyTorchTrial

    assert TFKerasTrial.trial_controller_class.__name__ == "KerasController"
    assert PyTorchTrial.trial_controller_class.__name__ == "PyTorchTrialController"


def test_event_files_are_the_trials_and_go_on_with_it(tmp_path: Path) -> None:
    def hidden(self: Any, x: Any) -> Any:
        tf.compat.v1.summary.scalar("mine", tf.reduce_sum(x))
        return x

    def build_estimator(self: Any) -> Any:
        config = tf.estimator.RunConfig(model_dir="estimator", save_summary_steps=1)
        return tf.estimator.Estimator(self.model_fn, config=config)

    run = Run(trial(hidden=hidden, build_estimator=build_estimator), tmp_path / "run", batches=4)
    run.tensorboard = tmp_path / "tensorboard"

    def known() -> dict[str, set[int]]:
        found: dict[str, set[int]] = {}
        for path in run.tensorboard.rglob("events.out.tfevents.*"):
            for event in tf.compat.v1.train.summary_iterator(str(path)):
                for value in event.summary.value:
                    found.setdefault(f"{path.parent.name}/{value.tag}", set()).add(event.step)
        return found

    work = tmp_path / "work"
    work.mkdir()
    run.files = UserFiles(work)
    run.run(stop_after=2)
    ended = int(time.time())
    saved = known()
    assert {"tensorboard/mine", "tensorboard/loss"} <= set(saved)
    folder = run.folder / "tensorboard"
    assert len(list(folder.rglob("events.out.tfevents.*"))) == len(list(run.tensorboard.rglob("events.out.tfevents.*")))
    shutil.rmtree(run.tensorboard)  # a machine that has none of them
    while int(time.time()) == ended:  # TensorFlow names a file by the second: no other process begins in the same one
        time.sleep(0.01)
    run.files = UserFiles(work)
    run.run()
    found = known()
    assert found["tensorboard/mine"] == {1, 2, 3, 4}
    assert found["eval/accuracy"] == {4}
    assert found["tensorboard/loss"] >= {1, 2, 3, 4}
