"""``tf.estimator.train_and_evaluate()`` of unchanged code, run in this process: what it sees and obeys."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from det_harness.frameworks.base import harness_for
from det_harness.frameworks.tf_estimator.joining import tf_config
from det_harness.frameworks.tf_estimator.observing import EvaluationListener
from rows_reporter import RowsReporter, train_here

from det_native.errors import TrialDefinitionError
from det_native.estimator.roles.call import UnchangedCall
from det_native.estimator.roles.entry import let_go, take_next, taken_over
from det_native.schema.lengths import UNTOLD
from det_native.schema.roles import Role

X = np.random.default_rng(3).normal(size=(20, 3)).astype("float32")
Y = X.argmax(1)


ADDRESSES = [f"127.0.0.1:{port}" for port in range(1, 6)]


def data(repeat: int | None = None) -> Any:
    return tf.data.Dataset.from_tensor_slices(({"x": X}, Y)).batch(5).repeat(repeat)


def model_fn(features: Any, labels: Any, mode: str) -> Any:
    logits = tf.compat.v1.layers.dense(features["x"], 3)
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.EstimatorSpec(mode, predictions=logits)
    loss = tf.compat.v1.losses.sparse_softmax_cross_entropy(labels, logits)
    step = tf.compat.v1.train.get_global_step()
    train_op = tf.compat.v1.train.GradientDescentOptimizer(0.1).minimize(loss, step)
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def receiver() -> Any:
    given = {"x": tf.compat.v1.placeholder(tf.float32, [None, 3])}
    return tf.estimator.export.ServingInputReceiver(given, given)


def estimator(folder: Path, every: int = 4) -> Any:
    config = tf.estimator.RunConfig(save_checkpoints_steps=every)
    return tf.estimator.Estimator(model_fn, str(folder / "model"), config=config)


def eval_spec(**others: Any) -> Any:
    return tf.estimator.EvalSpec(data, **{"steps": 2, "start_delay_secs": 0, "throttle_secs": 0} | others)


def run(call: UnchangedCall, folder: Path, length: int = UNTOLD.units) -> tuple[Any, RowsReporter]:
    searcher = {"name": "single", "metric": "loss", "smaller_is_better": True, "max_length": {"batches": length}}
    (folder / "files").mkdir()
    done = train_here(
        lambda services: harness_for(call).controller(call, services),
        config={"searcher": searcher},
        hparams={},
        trial_seed=1,
        directory=folder / "files",
        framework="tf_estimator",
    )
    return done.outcome, done.reporter


def test_the_entry_keeps_its_signature_and_is_given_back() -> None:
    before = tf.estimator.train_and_evaluate
    taken: list[Any] = []
    with taken_over(lambda *arguments: taken.append(arguments)):
        assert list(inspect.signature(tf.estimator.train_and_evaluate).parameters) == [
            "estimator",
            "train_spec",
            "eval_spec",
        ]
        tf.estimator.train_and_evaluate(1, train_spec=2, eval_spec=3)
        tf.compat.v1.estimator.train_and_evaluate(4, 5, 6)
    assert taken == [(1, 2, 3), (4, 5, 6)]
    with pytest.raises(TypeError, match="eval_spec"):
        tf.estimator.train_and_evaluate(1, 2, 3)
    assert before.__doc__ == tf.estimator.train_and_evaluate.__doc__


def test_who_takes_the_next_call_lets_it_go_again(capsys: pytest.CaptureFixture[str]) -> None:
    taken: list[Any] = []

    def first(*arguments: Any) -> None:
        taken.append(arguments)
        with pytest.raises(TypeError, match="eval_spec"):
            tf.estimator.train_and_evaluate(1, 2, 3)  # while it runs, a call is TensorFlow's own

    def second(*arguments: Any) -> None:
        taken.append(("second", *arguments))

    take_next(first)
    tf.estimator.train_and_evaluate(4, 5, 6)
    take_next(second)
    let_go(first, "Nobody reads this.")  # another one has them by now
    tf.estimator.train_and_evaluate(7, 8, 9)
    let_go(second, "By itself.")
    for _ in range(2):
        with pytest.raises(TypeError, match="eval_spec"):
            tf.estimator.train_and_evaluate(1, 2, 3)
    assert taken == [(4, 5, 6), ("second", 7, 8, 9)]
    assert capsys.readouterr().out == "By itself.\n"


def test_a_block_that_takes_all_calls_ends_what_was_begun_in_it() -> None:
    taken: list[str] = []
    with taken_over(lambda *arguments: taken.append("all")):
        take_next(lambda *arguments: taken.append("next"))
        tf.estimator.train_and_evaluate(1, 2, 3)
    with pytest.raises(TypeError, match="eval_spec"):
        tf.estimator.train_and_evaluate(1, 2, 3)
    assert taken == ["next"]


def test_run_local_evaluates_at_each_checkpoint_and_returns_what_tensorflow_does(tmp_path: Path) -> None:
    seen: list[str] = []

    class Hook(tf.estimator.SessionRunHook):  # type: ignore[misc]
        def begin(self) -> None:
            seen.append("hook")

    class Listener(tf.estimator.CheckpointSaverListener):  # type: ignore[misc]
        def after_save(self, session: Any, global_step_value: int) -> None:
            seen.append(f"saved {global_step_value}")

    train_spec = tf.estimator.TrainSpec(data, max_steps=10, hooks=[Hook()], saving_listeners=[Listener()])
    exporters = [tf.estimator.FinalExporter("last", receiver), tf.estimator.LatestExporter("latest", receiver)]
    spec = eval_spec(name="own", hooks=[Hook()], exporters=exporters)
    outcome, reporter = run(UnchangedCall(estimator(tmp_path), train_spec, spec), tmp_path)
    metrics, exports = outcome.result
    assert (outcome.batches, metrics["global_step"], len(exports)) == (10, 10, 2)
    assert seen == ["hook", "saved 0", "saved 4", "hook", "saved 8", "hook", "saved 10", "hook"]
    assert [row.batch for row in reporter.validation_rows] == [4, 8, 10]
    assert reporter.validation_rows[-1].metrics["loss"] == pytest.approx(metrics["loss"])
    assert [row.batch for row in reporter.training_rows] == list(range(1, 11))
    assert (tmp_path / "model" / "eval_own").is_dir()
    [*_, last] = reporter.checkpoints
    assert {"export", "model.ckpt-10.index"} <= {path.name for path in Path(last[0]).iterdir()}


def test_what_is_no_number_is_recorded_of_an_evaluation() -> None:
    told: list[Any] = []
    listener = EvaluationListener(lambda step, metrics: told.append((step, dict(metrics))))
    found = {"global_step": np.int64(4), "loss": np.float32(0.5), "matrix": np.eye(2, dtype=int), "note": b"cat"}
    listener.export(None, "", "", found, is_the_final_export=False)
    assert told == [(4, {"loss": 0.5, "matrix": [[1, 0], [0, 1]], "note": "cat"})]


def test_stop_condition_without_max_steps_is_the_end_of_the_data(tmp_path: Path) -> None:
    train_spec = tf.estimator.TrainSpec(lambda: data(1))
    outcome, _ = run(UnchangedCall(estimator(tmp_path), train_spec, eval_spec()), tmp_path)
    assert (outcome.batches, outcome.stopped) == (4, False)


def test_a_length_of_the_configuration_is_the_most(tmp_path: Path) -> None:
    train_spec = tf.estimator.TrainSpec(lambda: data(None), max_steps=10)
    outcome, _ = run(UnchangedCall(estimator(tmp_path), train_spec, eval_spec()), tmp_path, 6)
    assert outcome.batches == 6


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: tf.estimator.TrainSpec(3), "input_fn"),
        (lambda: tf.estimator.TrainSpec(data, max_steps=0), "max_steps"),
        (lambda: tf.estimator.TrainSpec(data, hooks=[3]), "hooks"),
        (lambda: tf.estimator.EvalSpec(3), "input_fn"),
        (lambda: eval_spec(steps=0), "steps"),
        (lambda: eval_spec(name=3), "name"),
        (lambda: eval_spec(hooks=[3]), "hooks"),
        (lambda: eval_spec(exporters=[3]), "exporters"),
        (lambda: eval_spec(exporters=[tf.estimator.FinalExporter("a", receiver)] * 2), "unique names"),
        (lambda: eval_spec(exporters=tf.estimator.FinalExporter("", receiver)), "name"),
        (lambda: eval_spec(start_delay_secs=-1), "start_delay_secs"),
        (lambda: eval_spec(throttle_secs=-1), "throttle_secs"),
    ],
)
def test_specs_refuse_what_they_cannot_use(make: Callable[[], Any], words: str) -> None:
    with pytest.raises((TypeError, ValueError), match=words):
        make()


@pytest.mark.parametrize(
    ("position", "words"), [(0, "give a tf.estimator.Estimator"), (1, "TrainSpec"), (2, "EvalSpec")]
)
def test_a_call_says_which_argument_is_wrong(tmp_path: Path, position: int, words: str) -> None:
    arguments: list[Any] = [estimator(tmp_path), tf.estimator.TrainSpec(data), eval_spec()]
    arguments[position] = None
    with pytest.raises(TrialDefinitionError, match=words) as caught:
        UnchangedCall(*arguments)
    assert isinstance(caught.value, TypeError)  # as TensorFlow's own function says it


@pytest.mark.parametrize(
    "task",
    [
        {"cluster": {"chief": ["a:1"], "worker": ["a:2"]}, "task": {"type": "worker", "index": 0}},
        {"cluster": {"chief": ["a:1"]}, "task": {"type": "evaluator", "index": 1}},
        {"cluster": {"chief": ["a:1"], "other": ["a:2"]}, "task": {"type": "other", "index": 0}},
        {"cluster": {"chief": ["a:1"], "local": ["a:2"]}, "task": {"type": "local", "index": 0}},
        {"cluster": {"local": ["a:2"]}, "task": {"type": "local", "index": 0}},
    ],
)
def test_a_wrong_tf_config_is_a_value_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, task: dict[str, Any]
) -> None:
    monkeypatch.setenv("TF_CONFIG", json.dumps(task))
    with pytest.raises(ValueError, match="TF_CONFIG"):
        run(UnchangedCall(estimator(tmp_path), tf.estimator.TrainSpec(data, max_steps=2), eval_spec()), tmp_path)


def test_tf_config_tells_each_role_its_task(monkeypatch: pytest.MonkeyPatch) -> None:
    roles = [Role("chief", 0), Role("worker", 0), Role("worker", 1), Role("ps", 0), Role("evaluator", 0)]
    found = []
    for rank in range(len(roles)):
        monkeypatch.setenv("TF_CONFIG", json.dumps(tf_config(roles, rank, ADDRESSES)))
        config = tf.estimator.RunConfig()
        found.append((config.task_type, config.task_id, config.is_chief, config.num_ps_replicas))
    assert found[:4] == [("chief", 0, True, 1), ("worker", 0, False, 1), ("worker", 1, False, 1), ("ps", 0, False, 1)]
    assert found[4][:2] == ("evaluator", 0)
    assert "evaluator" not in tf_config(roles, 4, ADDRESSES)["cluster"]
