"""What TensorFlow's ``training.py`` promises, class by class, of calls that are run as they are and watched."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
import tensorflow as tf
from test_unchanged_calls import data, estimator, eval_spec, receiver, run

from det_native.errors import TrialDefinitionError
from det_native.estimator.roles.call import UnchangedCall
from det_native.estimator.roles.entry import tensorflows_own

training = pytest.importorskip("tensorflow_estimator.python.estimator.training")

STEPS = 10


@pytest.fixture(autouse=True)
def _writers_are_closed() -> Iterator[None]:
    """Close the event files that TensorFlow's own classes leave open."""
    yield
    tf.compat.v1.summary.FileWriterCache.clear()


def endless() -> Any:
    return data(None)


def watched(folder: Path, *, train: dict[str, Any] | None = None, **evaluation: Any) -> tuple[Any, Any]:
    """Run a call with `STEPS` steps that saves after every fourth."""
    train_spec = tf.estimator.TrainSpec(endless, **{"max_steps": STEPS} | (train or {}))
    return run(UnchangedCall(estimator(folder), train_spec, eval_spec(**evaluation)), folder)


def set_task(monkeypatch: pytest.MonkeyPatch, kind: str, index: int = 0, **cluster: list[str]) -> None:
    monkeypatch.setenv("TF_CONFIG", json.dumps({"cluster": cluster, "task": {"type": kind, "index": index}}))


def test_stop_at_secs_hook_ends_the_training_with_a_checkpoint_and_an_evaluation(tmp_path: Path) -> None:
    outcome, reporter = watched(tmp_path, train={"max_steps": None, "hooks": [training._StopAtSecsHook(0)]})
    metrics, _ = outcome.result
    assert (outcome.batches, outcome.stopped, metrics["global_step"]) == (1, False, 1)
    assert [row.batch for row in reporter.validation_rows] == [1]
    assert len(reporter.checkpoints) == 1


def test_the_listener_skips_the_first_save_and_sees_the_last_step(tmp_path: Path) -> None:
    # The start's delay is of evaluators only: a local run evaluates as it trains.
    _, reporter = watched(tmp_path, throttle_secs=600, start_delay_secs=3600)
    # _NewCheckpointListenerForEvaluate: not the save of step 0; throttled at 8; at the end whatever the throttle says.
    assert [row.batch for row in reporter.validation_rows] == [4, STEPS]


def test_an_exporter_is_told_which_evaluation_is_the_last(tmp_path: Path) -> None:
    told: list[tuple[bool, int, str, str]] = []

    class Tells(tf.estimator.Exporter):  # type: ignore[misc]
        name = "tells"

        def export(
            self, estimator: Any, export_path: str, checkpoint_path: str, eval_result: Any, is_the_final_export: bool
        ) -> str:
            step = int(eval_result["global_step"])
            told.append((is_the_final_export, step, Path(export_path).name, Path(checkpoint_path).name))
            return f"exported {step}"

    outcome, _ = watched(tmp_path, exporters=Tells())
    # _export_eval_result: one export after each evaluation, by evaluate_and_export, the last of them the final one.
    assert told == [(step == STEPS, step, "tells", f"model.ckpt-{step}") for step in (4, 8, STEPS)]
    assert outcome.result[1] == [f"exported {STEPS}"]


def test_steps_and_name_of_an_evaluation(tmp_path: Path) -> None:
    batches: list[int] = []

    class Counts(tf.estimator.SessionRunHook):  # type: ignore[misc]
        def begin(self) -> None:
            batches.append(0)

        def after_run(self, run_context: Any, run_values: Any) -> None:
            batches[-1] += 1

    spec = tf.estimator.EvalSpec(lambda: data(1), steps=None, name="all", hooks=[Counts()], throttle_secs=0)
    run(UnchangedCall(estimator(tmp_path), tf.estimator.TrainSpec(endless, STEPS), spec), tmp_path)
    assert batches == [4, 4, 4]  # EvalSpec(steps=None): to the end of the data
    assert list((tmp_path / "model" / "eval_all").glob("*tfevents*"))
    names = ("steps", "name", "hooks", "exporters", "start_delay_secs", "throttle_secs")
    assert [getattr(tf.estimator.EvalSpec(data), name) for name in names] == [100, None, (), (), 120, 600]


@pytest.mark.parametrize(("kind", "index", "seconds"), [("worker", 0, 5), ("worker", 2, 15), ("worker", 50, 60)])
def test_a_worker_waits_before_it_trains(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, index: int, seconds: int
) -> None:
    set_task(monkeypatch, kind, index, chief=["a:1"], ps=["b:1"], worker=[f"c{i}:1" for i in range(51)])
    waited: list[float] = []
    executor = training._TrainingExecutor(estimator(tmp_path), tf.estimator.TrainSpec(endless, 1), eval_spec())
    monkeypatch.setattr(executor, "_start_std_server", lambda config: None)
    monkeypatch.setattr(training.time, "sleep", waited.append)
    monkeypatch.setattr(tf.estimator.Estimator, "train", lambda *args, **kwargs: None)
    executor.run_worker()
    assert [waited, training._DELAY_SECS_PER_WORKER, training._MAX_DELAY_SECS] == [[seconds], 5, 60]


def test_a_second_evaluator_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    set_task(monkeypatch, "evaluator", 1, chief=["a:1"], ps=["b:1"])
    with pytest.raises(ValueError, match="there can only be one `evaluator` task"):
        tensorflows_own(estimator(tmp_path), tf.estimator.TrainSpec(endless, 1), eval_spec())


@pytest.mark.parametrize("kind", ["chief", "worker", "ps", "master", "evaluator"])
def test_tf_config_of_the_user_needs_roles_in_the_configuration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    leads = "master" if kind == "master" else "chief"
    set_task(monkeypatch, kind, **{leads: ["a:1"], "ps": ["b:1"], "worker": ["c:1"]})
    words = f"TF_CONFIG says here that this process is {kind} 0 of several, but the configuration has no distributed.ro"
    with pytest.raises(TrialDefinitionError, match=re.escape(words)):
        watched(tmp_path)


def test_a_cluster_of_one_trains_without_a_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    set_task(monkeypatch, "chief", chief=["a:1"])
    outcome, reporter = watched(tmp_path)
    assert (outcome.batches, outcome.result) == (STEPS, (None, []))  # "undefined for distributed training mode"
    assert [row.batch for row in reporter.training_rows] == list(range(1, STEPS + 1))


@pytest.mark.parametrize(
    ("kind", "cluster", "words"),
    [
        ("worker", {"worker": ["a:1"]}, 'must have one "chief" node'),
        ("chief", {"chief": ["a:1", "b:1"]}, 'must have only one "chief" node'),
        ("local", {"chief": ["a:1"], "ps": ["b:1"]}, "local is not a valid task_type in the cluster_spec"),
        ("other", {"chief": ["a:1"], "ps": ["b:1"]}, "other is not a valid task_type in the cluster_spec"),
    ],
)
def test_tensorflow_refuses_a_wrong_tf_config_when_a_run_config_is_made(
    monkeypatch: pytest.MonkeyPatch, kind: str, cluster: dict[str, list[str]], words: str
) -> None:
    set_task(monkeypatch, kind, **cluster)
    with pytest.raises(ValueError, match=words):
        tf.estimator.RunConfig()


def test_an_unknown_task_type_names_those_that_there_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    set_task(monkeypatch, "other", chief=["a:1"], ps=["b:1"], other=["c:1"])
    executor = training._TrainingExecutor(estimator(tmp_path), tf.estimator.TrainSpec(endless, 1), eval_spec())
    with pytest.raises(ValueError, match="Task type other is not supported") as caught:
        executor.run()
    found = {name.removeprefix("run_") for name in dir(executor) if name.startswith("run_")} - {"local"}
    assert found == {"chief", "worker", "ps", "master", "evaluator"}
    assert all(name in str(caught.value) for name in found)


def test_eval_results_hold_together() -> None:
    status = training._EvalStatus
    assert (status.EVALUATED, status.MISSING_CHECKPOINT, status.NO_NEW_CHECKPOINT) == (
        "evaluated",
        "missing checkpoint",
        "no new checkpoint",
    )
    made = training._EvalResult
    assert made(status.MISSING_CHECKPOINT).metrics is None
    for arguments in ((status.NO_NEW_CHECKPOINT, {"loss": 1}), (status.EVALUATED, {}), (status.EVALUATED, {"a": 1})):
        with pytest.raises(ValueError, match=r"metrics|global_step"):
            made(*arguments)


def test_the_evaluator_evaluates_each_checkpoint_once(tmp_path: Path) -> None:
    spec, status = eval_spec(), training._EvalStatus
    own = estimator(tmp_path)
    evaluator = training._TrainingExecutor._Evaluator(own, spec, STEPS)
    assert evaluator.evaluate_and_export()[0].status == status.MISSING_CHECKPOINT
    watched(tmp_path)
    assert evaluator.evaluate_and_export()[0].status == status.EVALUATED
    assert evaluator.is_final_export_triggered
    assert evaluator.evaluate_and_export()[0].status == status.NO_NEW_CHECKPOINT


@pytest.mark.long
def test_a_continuous_eval_listener_says_whether_evaluations_go_on(tmp_path: Path) -> None:
    class Ends(training._ContinuousEvalListener):  # type: ignore[misc,name-defined]
        def after_eval(self, eval_result: Any) -> bool:
            return False

    listener = training._ContinuousEvalListener()
    assert (listener.before_eval(), listener.after_eval(None)) == (True, True)
    watched(tmp_path)
    arguments = (estimator(tmp_path), tf.estimator.TrainSpec(endless, STEPS), eval_spec(throttle_secs=3600))
    cast(Any, training._TrainingExecutor)(*arguments, continuous_eval_listener=Ends()).run_evaluator()


def test_a_call_in_place_of_a_spec_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TrialDefinitionError, match=r"a FinalExporter; give a tf\.estimator\.EvalSpec"):
        UnchangedCall(
            estimator(tmp_path), tf.estimator.TrainSpec(endless), tf.estimator.FinalExporter("last", receiver)
        )
