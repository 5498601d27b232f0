"""What is wrong with an EstimatorTrial is told with the remedy; and the private attributes of TensorFlow in use."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from det_harness.frameworks.estimator import internals
from det_harness.frameworks.estimator.data import Input
from estimator_runs import BATCH_SIZE, Run, Small, X, Y, trial

import det_native as det
from det_native import estimator
from det_native.errors import DetError, InvalidDataError, MissingDependencyError, TrialDefinitionError
from det_native.estimator import EstimatorContext, EstimatorTrial, EstimatorTrialContext
from det_native.estimator.checks import check_spec
from det_native.schema.environment import Ranks, TrialEnvironment

pytestmark = pytest.mark.slow


def unwrapped_dataset() -> Any:
    return tf.data.Dataset.from_tensor_slices(({"x": X}, Y)).batch(BATCH_SIZE)


def training(input_fn: Any) -> dict[str, Any]:
    return {"build_train_spec": lambda self: tf.estimator.TrainSpec(lambda: input_fn(self))}


def validation(input_fn: Any) -> dict[str, Any]:
    return {"build_validation_spec": lambda self: tf.estimator.EvalSpec(lambda: input_fn(self), steps=None)}


def distributed(**arguments: Any) -> dict[str, Any]:
    config = tf.estimator.RunConfig(model_dir="estimator", **arguments)
    return {"build_estimator": lambda self: tf.estimator.Estimator(self.model_fn, config=config)}


def returning(method: str, value: Any) -> dict[str, Any]:
    return {method: lambda self: value}


SPEC = tf.estimator.TrainSpec(unwrapped_dataset)
WRONG: list[tuple[dict[str, Any], type[DetError], str]] = [
    (returning("build_estimator", None), TrialDefinitionError, r"build_estimator\(\) returned None; return a tf\.est"),
    (returning("build_estimator", 1), TrialDefinitionError, "returned a int; return a tf.estimator.Estimator"),
    (
        distributed(train_distribute=tf.distribute.MirroredStrategy(["/cpu:0"])),
        TrialDefinitionError,
        "RunConfig has train_distribute: leave it out, and set resources.slots_per_trial",
    ),
    (
        distributed(eval_distribute=tf.distribute.MirroredStrategy(["/cpu:0"])),
        TrialDefinitionError,
        "RunConfig has eval_distribute",
    ),
    (returning("build_train_spec", (X, Y)), TrialDefinitionError, "returned a tuple; return a tf.estimator.TrainSpec"),
    (returning("build_validation_spec", SPEC), TrialDefinitionError, "returned a TrainSpec; return a tf.estimator.Ev"),
    (returning("build_validation_spec", None), TrialDefinitionError, "returned None; return a tf.estimator.EvalSpec"),
    (returning("build_serving_input_receiver_fns", [1]), TrialDefinitionError, "returned a list; return a dictionary"),
    (
        returning("build_serving_input_receiver_fns", {"../x": len}),
        TrialDefinitionError,
        "the name '../x', which is to be that of a folder",
    ),
    (returning("build_serving_input_receiver_fns", {"x": 1}), TrialDefinitionError, "a int for 'x'; give a function"),
    (
        training(lambda self: ({"x": tf.constant(X)}, tf.constant(Y))),
        InvalidDataError,
        "The input_fn of the TrainSpec returned a tuple of 2 parts; return a tf.data.Dataset",
    ),
    (training(lambda self: None), InvalidDataError, "returned None; return a tf.data.Dataset"),
    (
        training(lambda self: unwrapped_dataset()),
        InvalidDataError,
        r"TrainSpec returned a Dataset that is not wrapped: call dataset = context\.wrap_dataset",
    ),
    (
        {
            "__init__": lambda self, context: (
                vars(self).update(context=context, made=None) or vars(self).update(made=self.data().batch(BATCH_SIZE))
            ),
            **training(lambda self: self.made),
        },
        InvalidDataError,
        "TrainSpec returned a Dataset that was made outside of it.*: make the Dataset inside the input_fn",
    ),
    (
        {
            "__init__": lambda self, context: (
                vars(self).update(context=context, made=None) or vars(self).update(made=self.data())
            ),
            **validation(lambda self: self.made.batch(BATCH_SIZE)),
        },
        InvalidDataError,
        "EvalSpec uses a Dataset or a tensor that was made outside of it",
    ),
    (
        training(lambda self: self.context.wrap_dataset(self.data().batch(2))),
        InvalidDataError,
        "made of a wrapped one: .* Call it once",
    ),
    (training(lambda self: self.context.wrap_dataset([1])), InvalidDataError, "takes a tf.data.Dataset, not list"),
    (
        training(lambda self: self.data().take(0).batch(2)),
        InvalidDataError,
        "a Dataset without batches; nothing to train on",
    ),
    (validation(lambda self: unwrapped_dataset()), InvalidDataError, "EvalSpec returned a Dataset that is not wrapped"),
    (
        validation(lambda self: self.data().repeat().batch(2)),
        InvalidDataError,
        "EvalSpec returned a Dataset without end, which steps=None would read for ever: set steps",
    ),
    (
        {"optimizer": lambda self: tf.compat.v1.train.AdamOptimizer()},
        TrialDefinitionError,
        r"optimizer of Changed is not wrapped: call optimizer = context\.wrap_optimizer",
    ),
    ({"optimizer": lambda self: self.context.wrap_optimizer("Adam")}, TrialDefinitionError, "not 'Adam': make one"),
]


EVAL = tf.estimator.EvalSpec(unwrapped_dataset)
EXPORTER = tf.estimator.FinalExporter("last", unwrapped_dataset)


def named(name: Any) -> Any:
    """Return an exporter of a name that TensorFlow's own do not take."""
    return type("Named", (tf.estimator.Exporter,), {"name": name, "export": lambda self, *given: None})()


@pytest.mark.parametrize(
    ("spec", "replaced", "told"),
    [
        (SPEC, {"input_fn": 1}, "a TrainSpec whose input_fn is a int; give a function that returns a tf.data.Dataset"),
        (SPEC, {"hooks": [len]}, "hooks have a builtin_function_or_method; each has to be a tf.estimator.SessionRun"),
        (SPEC, {"max_steps": 0}, "max_steps is 0; give a number above 0, or None"),
        (EVAL, {"input_fn": None}, "an? EvalSpec whose input_fn is None"),
        (EVAL, {"hooks": ["x"]}, "hooks have a str"),
        (EVAL, {"steps": -1}, "steps is -1; give a number above 0, or None for all of the data"),
        (EVAL, {"name": 3}, "name is 3; give a text, or None"),
        (EVAL, {"start_delay_secs": -1}, "start_delay_secs is -1; give a number of seconds, 0 or more"),
        (EVAL, {"throttle_secs": -1}, "throttle_secs is -1"),
        (EVAL, {"exporters": [1]}, "exporters have a int; each has to be a tf.estimator.Exporter"),
        (EVAL, {"exporters": [named("")]}, "exporters have one whose name is ''"),
        (EVAL, {"exporters": [named(7)]}, "exporters have one whose name is 7"),
        (EVAL, {"exporters": [EXPORTER, named("last")]}, "exporters have two of the name 'last'"),
    ],
)
def test_what_is_wrong_in_a_spec_is_told(spec: Any, replaced: dict[str, Any], told: str) -> None:
    with pytest.raises(TrialDefinitionError, match=told):
        check_spec(spec._replace(**replaced), type(spec), "The call was given", "give")
    check_spec(spec, type(spec), "The call was given")


def from_files(context: Any) -> Any:
    """Return a Dataset of records of which a function of its steps makes a Dataset for each file."""
    files = tf.data.Dataset.range(2)
    return files.interleave(lambda file: context.wrap_dataset(tf.data.Dataset.from_tensor_slices(({"x": X}, Y)))).batch(
        BATCH_SIZE
    )


def dropped(context: Any) -> Any:
    made = tf.data.Dataset.from_tensor_slices(({"x": X}, Y))
    context.wrap_dataset(made)
    return made.batch(BATCH_SIZE)


def zipped(context: Any) -> Any:
    both = (tf.data.Dataset.from_tensor_slices(({"x": X}, Y)), tf.data.Dataset.range(len(X)))
    return tf.data.Dataset.zip(tuple(context.wrap_dataset(each) for each in both)).batch(BATCH_SIZE)


def of_version_1(context: Any) -> Any:
    made = tf.compat.v1.data.Dataset.from_tensor_slices(({"x": X}, Y))
    return context.wrap_dataset(made).shuffle(8).batch(BATCH_SIZE)


def sharded(context: Any) -> Any:
    made = tf.data.Dataset.from_tensor_slices(({"x": X}, Y)).shard(2, context.distributed.get_rank())
    return context.wrap_dataset(made, shard_dataset=False).batch(BATCH_SIZE)


@pytest.mark.parametrize(
    ("data", "batches"),
    [
        (zipped, 2),
        (of_version_1, 2),
        (sharded, 2),
        (from_files, 4),
        (dropped, None),
    ],
)
def test_on_two_slots_what_wrap_dataset_has_returned_is_to_be_used(data: Any, batches: int | None) -> None:
    context = EstimatorTrialContext(TrialEnvironment(config={}, hparams={}, ranks=Ranks(1, 2, 1, 2), managed=True))
    source = Input(lambda: data(context), "The input_fn of the TrainSpec", context, {})
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        if batches is None:
            with pytest.raises(InvalidDataError, match="each of the 2 processes would read all of it: use the result"):
                source.dataset()
            return
        count = source.dataset().reduce(np.int64(0), lambda found, element: found + 1)
        assert session.run(count) == batches
    alone = EstimatorTrialContext(TrialEnvironment(config={}, hparams={}, managed=True))
    with tf.Graph().as_default():
        Input(lambda: dropped(alone), "The input_fn", alone, {}).dataset()  # it is the Dataset itself there


def test_roles_of_tf_config_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    roles = {"cluster": {"chief": ["localhost:1"], "ps": ["localhost:2"]}, "task": {"type": "chief", "index": 0}}
    monkeypatch.setenv("TF_CONFIG", json.dumps(roles))
    with pytest.raises(TrialDefinitionError, match=r"has the roles of TF_CONFIG: unset that variable, or leave"):
        Run(Small, tmp_path, batches=1).run()


@pytest.mark.parametrize(("parts", "kind", "told"), WRONG, ids=[str(number) for number in range(len(WRONG))])
def test_what_is_wrong_is_told(parts: dict[str, Any], kind: type[DetError], told: str, tmp_path: Path) -> None:
    with pytest.raises(kind, match=told):
        Run(trial(**parts), tmp_path, batches=1).run()


def test_a_class_without_its_methods_is_told_before_anything_runs() -> None:
    class Empty(EstimatorTrial):
        pass

    class WithArgument(Small):
        def build_estimator(self, hparams: Any) -> Any:  # type: ignore[override]
            return None

    config = {"searcher": {"name": "single", "metric": "loss", "max_length": {"batches": 1}}}
    with pytest.raises(TrialDefinitionError, match=r"Empty lacks build_estimator\(\), build_train_spec\(\)"):
        det.experimental.create(Empty, config, local=True)
    with pytest.raises(TrialDefinitionError, match=r"must take \(self\) only"):
        det.experimental.create(WithArgument, config, local=True)


def test_a_tensorflow_without_estimators_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    assert estimator.__getattr__("EstimatorTrial") is EstimatorTrial
    monkeypatch.setitem(sys.modules, "tensorflow", type("TensorFlow", (), {"__version__": "2.16.1"}))
    with pytest.raises(MissingDependencyError, match=r"has TensorFlow 2\.16\.1: run  pip install \"tensorflow>=2\.15"):
        estimator.__getattr__("EstimatorTrial")


def test_outside_a_run_nothing_has_to_be_wrapped() -> None:
    context = EstimatorTrialContext.from_config({"hyperparameters": {"global_batch_size": 5}})
    dataset = tf.data.Dataset.range(3)
    assert isinstance(context, EstimatorContext)
    assert context.wrap_dataset(context.wrap_dataset(dataset)) is dataset


class TestInternals:
    """Each private attribute of TensorFlow 2.15 does what it is used for."""

    def test_warm_start_settings(self) -> None:
        settings = tf.estimator.WarmStartSettings("somewhere")
        model_fn = lambda features, labels, mode: None  # noqa: E731
        estimator = tf.estimator.Estimator(model_fn, "estimator", warm_start_from=settings)
        assert internals.warm_start_of(estimator) == settings
        assert internals.warm_start_of(tf.estimator.Estimator(model_fn, "estimator")) is None

    def test_iterator_resource_and_as_serialized_graph(self) -> None:
        with tf.Graph().as_default(), tf.compat.v1.Session() as session:
            dataset = tf.data.Dataset.range(3).shuffle(3)
            iterator = tf.compat.v1.data.make_initializable_iterator(dataset)
            assert internals.resource_of(iterator).dtype == tf.resource
            assert b"ShuffleDataset" in session.run(internals.graph_of(dataset))

    def test_get_control_flow_context(self) -> None:
        tf.compat.v1.disable_control_flow_v2()
        try:
            with tf.Graph().as_default() as graph:
                tf.while_loop(lambda i: i < 2, lambda i: tf.add(i, 1, "inside"), [tf.constant(0, name="outside")])
        finally:
            tf.compat.v1.enable_control_flow_v2()
        assert not internals.is_in_control_flow(graph.get_operation_by_name("outside"))
        assert internals.is_in_control_flow(graph.get_operation_by_name("while/inside"))

    def test_update_input(self) -> None:
        with tf.Graph().as_default(), tf.compat.v1.Session() as session:
            first, second = tf.constant(1.0), tf.constant(2.0)
            doubled = first * 2.0
            internals.replace_input(doubled.op, 0, second)
            assert session.run(doubled) == 4.0

    def test_a_stop_is_taken_back(self) -> None:
        context = tf.estimator.SessionRunContext(None, None)
        context.request_stop()
        internals.withdraw_stop(context)
        assert not context.stop_requested

    def test_events_go_elsewhere(self, tmp_path: Path) -> None:
        with tf.Graph().as_default():
            writer = tf.compat.v1.summary.FileWriter(str(tmp_path))
        internals.write_events_to("elsewhere", writer)
        assert tf.compat.v1.summary.FileWriterCache.get("elsewhere") is writer
        tf.compat.v1.summary.FileWriterCache.clear()
