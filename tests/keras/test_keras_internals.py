"""Private attributes of tf.keras 2.15: each is what ``keras/generations/keras2.py`` takes it for, in eager mode.

Graph mode, whose optimizers and training functions are others, has test_graph_mode.py.
"""

from __future__ import annotations

import inspect
import random
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from det_native.keras.generations import keras2 as internals

pytestmark = pytest.mark.slow

X, Y = np.zeros((8, 4), "float32"), np.zeros((8, 1), "float32")


def made(*layers: Any, **compiled: Any) -> Any:
    model = tf.keras.Sequential([tf.keras.Input((4,)), *layers, tf.keras.layers.Dense(1)])
    model.compile("sgd", "mse", **compiled)
    return model


@pytest.mark.parametrize(("given", "several"), [(None, False), (1, False), (3, True), ("auto", True)])
def test_steps_per_execution(given: Any, several: bool) -> None:
    """``_steps_per_execution``, ``_autotune_steps_per_execution``."""
    assert internals.takes_several_batches(made(steps_per_execution=given)) is several


def test_make_class_weight_map_fn() -> None:
    """``_make_class_weight_map_fn``: it adds the weights of classes to the batches of a Dataset."""
    labels = np.array([0, 1, 1, 0])
    rows = tf.data.Dataset.from_tensor_slices((X[:4], labels)).batch(4).map(internals.class_weighting({0: 1.0, 1: 5.0}))
    [(_, _, weights)] = rows
    assert weights.numpy().tolist() == [1.0, 5.0, 5.0, 1.0]


def test_serialize_hyperparameter() -> None:
    """``_serialize_hyperparameter``: the optimizer is as before once it has been turned into the older form."""
    model = made()
    optimizer = model.optimizer
    before = optimizer._serialize_hyperparameter
    internals.use_older_optimizer(model)
    assert isinstance(model.optimizer, tf.keras.optimizers.legacy.SGD)
    assert optimizer._serialize_hyperparameter == before
    older = model.optimizer
    internals.use_older_optimizer(model)
    assert model.optimizer is older


@pytest.mark.parametrize("optimizer", ["adam", tf.keras.optimizers.legacy.Adam()])
def test_create_all_weights(optimizer: Any) -> None:
    """``_create_all_weights``, of the older form; ``build`` of the other one is public."""
    model = made()
    model.compile(optimizer, "mse")
    internals.build_optimizer(model)
    variables = model.optimizer.variables
    # Two moments of a kernel and of a bias, and a count; one of the newer form counts its learning rate too.
    assert len(variables() if callable(variables) else variables) in (5, 6)


def test_get_training_eval_metrics() -> None:
    """``_get_training_eval_metrics`` is of graphs alone."""
    assert not hasattr(tf.keras.Model, "_get_training_eval_metrics")
    model = made(metrics=["mae"])
    model.fit(X, Y, verbose=0)
    assert [metric.name for metric in internals.metrics_of(model)] == ["loss", "mae"]


def test_make_train_function() -> None:
    """``_make_train_function`` is of graphs alone: ``make_train_function`` of the others is public."""
    with pytest.raises(AttributeError, match="_make_train_function"):
        internals.build_training(made())


def test_counters() -> None:
    """``_train_counter``, ``_test_counter``, ``_predict_counter``."""
    model = made()
    model.fit(X, Y, batch_size=4, verbose=0)
    model.evaluate(X, Y, batch_size=2, verbose=0)
    model.predict(X, batch_size=8, verbose=0)
    assert [int(counter) for counter in internals.counters_of(model)] == [2, 4, 1]
    assert internals.batches_trained(model) == 2
    internals.count_batches_from(model, 7)
    model.train_on_batch(X, Y)
    assert internals.batches_trained(model) == 8


def test_training_state() -> None:
    """``_training_state``: Keras asks it for the first epoch, and whether a step of it is to be left out."""

    class Start:
        def maybe_load_initial_counters_from_ckpt(self, steps: Any, initial_epoch: int, mode: Any) -> tuple[int, int]:
            return 2, 1

    class Starting(tf.keras.callbacks.Callback):
        def on_train_begin(self, logs: Any = None) -> None:
            internals.begin_fit(self.model, Start())

    model = made()
    history = model.fit(X, Y, batch_size=4, epochs=4, verbose=0, callbacks=[Starting()])
    assert history.epoch == [2, 3]
    assert internals.batches_trained(model) == 3  # the first batch of the third epoch was left out
    internals.end_fit(model)
    assert model.fit(X, Y, batch_size=4, verbose=0).epoch == [0]


def test_should_eval_and_eval_data_handler() -> None:
    """``_should_eval``, and ``_eval_data_handler``, which a fit that raised leaves behind."""

    class Leaving(tf.keras.callbacks.Callback):
        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            internals.leave_validation_out(self.model)

    class Raising(tf.keras.callbacks.Callback):
        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            raise ZeroDivisionError

    model = made()
    assert "val_loss" not in model.fit(X, Y, validation_data=(X, Y), verbose=0, callbacks=[Leaving()]).history
    internals.end_fit(model)
    with pytest.raises(ZeroDivisionError):
        model.fit(X, Y, validation_data=(X, Y), verbose=0, callbacks=[Raising()])
    assert model._eval_data_handler is not None
    internals.end_fit(model)
    other = model.fit(X, Y, validation_data=(X, Y + 2), verbose=0).history["val_loss"]
    assert other == pytest.approx([model.evaluate(X, Y + 2, verbose=0)])


def test_is_compiled() -> None:
    """``_is_compiled``."""
    assert internals.is_compiled(made())
    assert not internals.is_compiled(tf.keras.Sequential([tf.keras.layers.Dense(1)]))


def test_flatten_layers() -> None:
    """``_flatten_layers`` finds layers in layers."""
    inner = tf.keras.Sequential([tf.keras.layers.Dense(2), tf.keras.layers.Dropout(0.5)])
    model = made(inner)
    found = internals.layers_of(model, include_self=False)
    assert {type(layer).__name__ for layer in found} >= {"Sequential", "Dense", "Dropout"}
    assert model not in found
    assert internals.layers_of(model)[0] is model


def test_user_metrics_and_metrics_of_layers() -> None:
    """``_user_metrics``, ``_user_weighted_metrics``; ``_metrics`` of a layer."""
    assert internals.metrics_given(made(metrics=["mae"], weighted_metrics=["mse"])) == ["mae", "mse"]

    class Adding(tf.keras.layers.Layer):
        def call(self, rows: Any) -> Any:
            self.add_metric(tf.reduce_sum(rows), name="sum")
            return rows

    assert internals.metrics_given(made(Adding())) is None


class TestRandomNumbers:
    """``_random_generator``, ``_rng_type``, ``_seed``, ``_built``, ``_maybe_init``, ``_generator`` of layers."""

    def test_a_layer_gets_a_generator(self) -> None:
        model = made(tf.keras.layers.Dropout(0.5))
        assert internals.generators_of(model) == []
        (found,) = internals.random_generators(model)
        assert internals.make_saveable(found, 5)
        assert found._seed == 5
        (generator,) = internals.generators_of(model)
        before = generator.state.numpy()
        model(X, training=True)
        assert (generator.state.numpy() != before).any()
        assert not internals.make_saveable(found, 6)

    def test_a_seed_of_its_own_stays(self) -> None:
        (found,) = internals.random_generators(made(tf.keras.layers.Dropout(0.5, seed=3)))
        internals.make_saveable(found, 5)
        assert found._seed == 3


def test_global_generator(monkeypatch: pytest.MonkeyPatch) -> None:
    """``stateful_random_ops.global_generator``."""
    monkeypatch.setattr(internals.stateful_random_ops, "global_generator", None)
    assert internals.global_generator() is None
    assert tf.random.get_global_generator() is internals.global_generator()


def test_seed_generator(monkeypatch: pytest.MonkeyPatch) -> None:
    """``keras.src.backend._SEED_GENERATOR``."""
    from keras.src import backend

    monkeypatch.setattr(backend._SEED_GENERATOR, "generator", random.Random(0), raising=False)

    def weights(seed: int) -> Any:
        tf.random.set_seed(1)
        internals.draw_seeds_of_initializers_from(Integers(seed))
        return made().get_weights()[0]

    assert (weights(4) == weights(4)).all()
    assert (weights(4) != weights(5)).any()


class Integers(random.Random):
    """Keras asks with a float as limit, which Python warns of."""

    def randint(self, a: float, b: float) -> int:
        return super().randint(int(a), int(b))


def test_trackable_children_and_lookup_dependency(tmp_path: Path) -> None:
    """``_trackable_children``, ``_lookup_dependency``: the optimizer of a checkpoint is left where it is."""
    model, other = made(), made()
    model.fit(X + 1, Y + 1, verbose=0)
    path = tf.train.Checkpoint(model=model).write(str(tmp_path / "model"))
    other.optimizer.learning_rate = 0.5
    tf.train.Checkpoint(model=internals.WithoutOptimizers(other)).read(path).expect_partial()
    assert (other.get_weights()[0] == model.get_weights()[0]).all()
    assert int(other.optimizer.iterations) == 0
    assert float(other.optimizer.learning_rate) == 0.5


def test_nothing_runs_where_a_model_is_built() -> None:
    """Keras ends the names of such graphs with ``_scratch_graph``."""
    ran: list[int] = []

    class Counting(tf.keras.layers.Layer):  # type: ignore[misc]  # TensorFlow has no types
        def call(self, rows: Any) -> Any:
            tf.py_function(lambda: ran.append(1), [], [])
            return rows

    model = tf.keras.Sequential([tf.keras.layers.Dense(3), Counting()])
    internals.build_on(model, tf.zeros((2, 5)))
    assert (model.built, len(model.weights), ran) == (True, 2, [])


def test_each_private_name_is_named_by_a_test() -> None:
    used = set(re.findall(r"(?:\.|\")(_[a-zA-Z]\w+)", inspect.getsource(internals)))
    named = inspect.getsource(inspect.getmodule(made))  # type: ignore[arg-type]
    assert {name for name in used if name not in named} == set()


def test_index_dict_and_unique_id_tell_what_an_optimizer_trains() -> None:
    """``_index_dict`` of an optimizer, by ``_unique_id`` of variables."""
    model = made(tf.keras.layers.Dense(3))
    assert internals.trained_by(model.optimizer) is None or internals.trained_by(model.optimizer) == []
    model.optimizer.build(model.trainable_variables[:2])
    assert internals.trained_by(model.optimizer) == [internals.key_of(each) for each in model.trainable_variables[:2]]


def test_slots_tell_what_an_optimizer_of_the_older_form_keeps() -> None:
    """``_slots`` of an optimizer, by ``_unique_id`` of variables; ``_create_all_weights`` makes them."""
    model = made(tf.keras.layers.Dense(3))
    optimizer = tf.keras.optimizers.legacy.Adam()
    assert internals.trained_by(optimizer) == []
    internals.build_for(optimizer, model.trainable_variables[:2])
    assert internals.trained_by(optimizer) == [internals.key_of(each) for each in model.trainable_variables[:2]]


def test_apart_keeps_what_a_model_has_no_place_for_from_it(tmp_path: Path) -> None:
    """``_trackable_children``, ``_lookup_dependency``: a model that is compiled later does not look for the files."""
    model, fresh = made(), tf.keras.Sequential([tf.keras.Input((4,)), tf.keras.layers.Dense(1)])
    model.fit(X, Y, verbose=0)
    path = tf.train.Checkpoint(model=model).write(str(tmp_path / "saved"))
    tf.train.Checkpoint(model=internals.Apart(fresh)).read(path).assert_existing_objects_matched()
    for file in tmp_path.iterdir():
        file.unlink()
    fresh.compile("sgd", "mse")
    assert all(np.array_equal(a, b) for a, b in zip(fresh.get_weights(), model.get_weights(), strict=True))
