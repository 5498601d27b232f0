"""The native context: what wrapping changes about a model, and what it leaves alone."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import det_native as det
from det_native.errors import ArgumentError, InvalidDataError, TrialDefinitionError
from det_native.horovod import HorovodContext
from det_native.keras import (
    FitCall,
    TFKerasContext,
    TFKerasExperimentalContext,
    TFKerasNativeContext,
    TFKerasTrialContext,
)
from det_native.schema.environment import Ranks, TrialEnvironment

pytestmark = pytest.mark.slow

X, Y = np.zeros((8, 4), "float32"), np.zeros((8, 1), "float32")


class Calls:
    """Takes the calls of fit; its context has the given role."""

    def __init__(self, role: Any = "local", **environment: Any) -> None:
        self.taken: list[FitCall] = []
        self.context = TFKerasNativeContext(TrialEnvironment({}, {}, **environment), on_fit=self._take, role=role)

    def _take(self, call: FitCall) -> str:
        self.taken.append(call)
        return f"result {len(self.taken)}"


def make_model(**layer: Any) -> Any:
    model = tf.keras.Sequential([tf.keras.layers.Dense(1, **layer)])
    model.compile("sgd", "mse")
    return model


def test_wrapping_returns_the_same_model_and_takes_its_fit() -> None:
    calls, model = Calls(), make_model()
    assert calls.context.wrap_model(model) is model
    assert model.fit(X, Y, 4, epochs=3) == "result 1"
    (call,) = calls.taken
    assert call.model is model
    assert call.arguments["batch_size"] == 4
    assert call.arguments["epochs"] == 3
    assert call.arguments["verbose"] == "auto"
    assert call.given == {"x", "y", "batch_size", "epochs"}


def test_each_of_several_models_is_tied_to_its_own_fit() -> None:
    calls = Calls()
    one, other, plain = calls.context.wrap_model(make_model()), calls.context.wrap_model(make_model()), make_model()
    other.fit(X, Y)
    one.fit(X, Y)
    assert [call.model for call in calls.taken] == [other, one]
    assert isinstance(plain.fit(X, Y, verbose=0), tf.keras.callbacks.History)


def test_the_interception_survives_compile_and_add() -> None:
    calls = Calls()
    model = calls.context.wrap_model(tf.keras.Sequential([tf.keras.Input((4,)), tf.keras.layers.Dense(2)]))
    model.compile("sgd", "mse")
    model.add(tf.keras.layers.Dense(1))
    model.compile("adam", "mae")
    assert model.fit(X, Y) == "result 1"
    assert model.output_shape == (None, 1)


@pytest.mark.parametrize("file", ["model.keras", "model.h5", "folder"])
@pytest.mark.filterwarnings("ignore:You are saving")
def test_a_wrapped_model_is_saved_like_any_other(file: str, tmp_path: Path) -> None:
    model = Calls().context.wrap_model(make_model(input_shape=(4,)))
    model.save(tmp_path / file)
    loaded = tf.keras.models.load_model(tmp_path / file)
    assert np.array_equal(loaded.get_weights()[0], model.get_weights()[0])
    assert isinstance(loaded.fit(X, Y, verbose=0), tf.keras.callbacks.History)


@pytest.mark.parametrize("layer", [{"input_shape": (4,)}, {}], ids=["built", "not built"])
def test_copies_of_a_wrapped_model_are_plain(layer: dict[str, Any]) -> None:
    calls = Calls()
    made = make_model(**layer) if layer else tf.keras.Sequential([tf.keras.layers.Dense(1)])
    model = calls.context.wrap_model(made)
    copies = [copy.deepcopy(model), tf.keras.models.clone_model(model)]
    if layer:
        copies.append(pickle.loads(pickle.dumps(model)))
    for other in copies:
        other.compile("sgd", "mse")
        history = other.fit(X, Y, verbose=0)
        assert isinstance(history, tf.keras.callbacks.History)
        assert history.model is other
    assert calls.taken == []


def test_a_released_model_is_plain_again() -> None:
    calls = Calls("cluster")
    model = calls.context.wrap_model(make_model())
    calls.context.release_model(model)
    assert isinstance(model.fit(X, Y, verbose=0), tf.keras.callbacks.History)
    assert set(vars(model)).isdisjoint({"fit", "fit_generator", "predict", "evaluate"})


def test_whether_a_call_waits_is_no_argument_of_keras() -> None:
    calls = Calls("cluster")
    model = calls.context.wrap_model(make_model())
    for wait in (True, False, None):
        model.fit(X, Y, wait=wait)
        assert calls.taken[-1].wait is wait
        assert calls.taken[-1].extra == {}
    with pytest.raises(ArgumentError, match=r"fit\(\): wait must be True"):
        model.fit(X, Y, wait="yes")


def test_a_fit_of_the_users_own_that_waits_keeps_its_argument() -> None:
    class Own(tf.keras.Sequential):
        def fit(self, *args: Any, wait: float = 0, **kwargs: Any) -> Any:
            return super().fit(*args, **kwargs)

    calls, model = Calls(), Own([tf.keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    calls.context.wrap_model(model).fit(X, Y, wait=3.5)
    assert calls.taken[0].extra == {"wait": 3.5}
    assert calls.taken[0].wait is None


def test_a_model_class_with_a_fit_of_its_own_gets_its_arguments() -> None:
    class Own(tf.keras.Sequential):
        def fit(self, *args: Any, warmth: int = 0, **kwargs: Any) -> Any:
            return super().fit(*args, **kwargs)

    calls, model = Calls(), Own([tf.keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    calls.context.wrap_model(model).fit(X, Y, warmth=3)
    assert calls.taken[0].extra == {"warmth": 3}
    assert calls.taken[0].original("fit").__func__ is Own.fit


def test_outside_any_run_wrappers_pass_through() -> None:
    calls = Calls(managed=False, ranks=Ranks(rank=1, size=2))
    model, rows = make_model(), tf.data.Dataset.range(4)
    assert calls.context.wrap_model(model) is model
    assert isinstance(model.fit(X, Y, verbose=0), tf.keras.callbacks.History)
    assert calls.context.wrap_dataset(rows) is rows


def test_a_dataset_is_sharded_over_the_processes_of_a_trial() -> None:
    rows = tf.data.Dataset.range(6)
    second = Calls(ranks=Ranks(rank=1, size=2)).context
    assert list(second.wrap_dataset(rows).as_numpy_iterator()) == [1, 3, 5]
    assert second.wrap_dataset(rows, shard_dataset=False) is rows
    assert Calls().context.wrap_dataset(rows) is rows


def test_what_is_no_model_and_no_dataset_is_refused() -> None:
    with pytest.raises(TrialDefinitionError, match=r"tf.keras.Model, not builtins.dict"):
        Calls().context.wrap_model({})
    with pytest.raises(InvalidDataError, match="not ndarray"):
        Calls().context.wrap_dataset(X)


def test_an_optimizer_is_returned_as_it_is() -> None:
    optimizer = tf.keras.optimizers.SGD()
    assert Calls().context.wrap_optimizer(optimizer) is optimizer


def test_the_room_is_cheap_to_import_and_says_what_is_missing() -> None:
    cheap = "import det_native.keras, sys; assert 'tensorflow' not in sys.modules"
    subprocess.run([sys.executable, "-c", cheap], check=True, timeout=60)
    hidden = (
        "import sys; sys.modules['tensorflow'] = None\n"
        "from det_native.errors import MissingDependencyError\n"
        "try:\n    import det_native.keras as room; room.TFKerasNativeContext\n"
        "except MissingDependencyError as error: assert 'det-native[keras]' in str(error)\n"
        "else: raise SystemExit('no error')\n"
    )
    subprocess.run([sys.executable, "-c", hidden], check=True, timeout=60)


CONTEXTS = [TFKerasContext, TFKerasTrialContext, TFKerasExperimentalContext, TFKerasNativeContext]


@pytest.mark.parametrize("kind", CONTEXTS)
def test_each_context_is_made_of_an_environment_and_settings_of_horovod(kind: Any) -> None:
    config = {"optimizations": {"aggregation_frequency": 3, "gradient_compression": True, "tensor_fusion_threshold": 7}}
    env = det.EnvContext(config, {"global_batch_size": 8}, ranks=Ranks(rank=1, size=2))
    plain = kind(env)
    assert plain.hvd_config == HorovodContext(use=True, aggregation_frequency=3, gradient_compression=True)
    assert (plain.distributed.get_rank(), plain.distributed.get_size()) == (1, 2)
    given = kind(env=env, hvd_config=HorovodContext(use=True, aggregation_frequency=5))
    assert given.hvd_config.aggregation_frequency == 5
    optimizations = given.get_experiment_config()["optimizations"]
    assert optimizations["aggregation_frequency"] == 5
    assert optimizations["tensor_fusion_threshold"] == 7
    assert not optimizations["gradient_compression"]
    assert config["optimizations"]["aggregation_frequency"] == 3
    if kind is not TFKerasExperimentalContext:
        assert isinstance(given.experimental, TFKerasExperimentalContext)
        assert given.experimental.hvd_config == given.hvd_config


def test_the_experimental_context_learns_what_the_run_is_told() -> None:
    context = TFKerasTrialContext(det.EnvContext({}, {}))
    context.use_environment(det.EnvContext({"optimizations": {"aggregation_frequency": 2}}, {"units": 3}, trial_seed=7))
    assert context.experimental.get_trial_seed() == context.get_trial_seed() == 7
    assert context.experimental.hvd_config.aggregation_frequency == context.hvd_config.aggregation_frequency == 2


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"env": {"hparams": {}}}, r"takes a det\.EnvContext, not dict; .*from_config\(config\) makes one"),
        ({"hvd_config": True}, "must be a det_native.horovod.HorovodContext, not bool"),
        (
            {"hvd_config": HorovodContext(use=True)},
            r"use=True\) contradicts the environment, whose trial has 1 process;",
        ),
        ({"hvd_config": HorovodContext(aggregation_frequency=0)}, "aggregation_frequency=0 must be at least 1"),
    ],
)
def test_a_context_of_something_else_is_told(given: dict[str, Any], told: str) -> None:
    with pytest.raises(ArgumentError, match=told):
        TFKerasTrialContext(**{"env": det.EnvContext({}, {}), **given})
