"""The weights of a run of Keras, of either generation, in models that are there already."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from keras_generation import only_keras_2

import det_native as det
from det_native.errors import ArgumentError, CheckpointError
from det_native.home.result import load_state
from det_native.keras.native import FitCall

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("recorded")]

keras = tf.keras
X = np.random.default_rng(1).normal(size=(40, 6)).astype("float32")
Y = X[:, :1]
CONFIG: dict[str, Any] = {"reproducibility": {"experiment_seed": 5}}


def made(units: int = 5, *, built: bool = True) -> Any:
    layers = [keras.layers.Dense(units, "relu"), keras.layers.Dropout(0.3), keras.layers.Dense(1)]
    return keras.Sequential([keras.Input((6,)), *layers] if built else layers)


def compiled(model: Any, optimizer: Any = None) -> Any:
    model.compile(optimizer or keras.optimizers.Adam(0.01), "mse")
    return model


def trained(model: Any, **arguments: Any) -> Any:
    """Return the experiment of a wrapped model that is trained here."""
    context = det.experimental.keras.init(CONFIG, local=True)
    given = {"batch_size": 8, "epochs": 3, "verbose": 0} | arguments
    data = (X, Y) if "x" not in given else ()
    context.wrap_model(model).fit(*data, **given)
    return context.experiment


def call_of(model: Any) -> FitCall:
    """Return a call of a model that is not trained."""
    context = det.experimental.keras.init(CONFIG, local=True)
    return FitCall.of(context, context.wrap_model(model), "fit", (X, Y), {"batch_size": 8, "epochs": 3})


def values_of(model: Any, *optimizers: Any) -> list[Any]:
    variables = [each for one in optimizers or (model.optimizer,) for each in one.variables]
    return [*model.get_weights(), *(np.array(each) for each in variables)]


def assert_equal(one: list[Any], other: list[Any]) -> None:
    assert len(one) == len(other)
    assert all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


def test_a_compiled_model_gets_weights_and_slots_and_goes_on_as_the_trained_one() -> None:
    model = compiled(made())
    experiment = trained(model)
    fresh = compiled(made(), keras.optimizers.Adam(0.5))
    shared = keras.Model(fresh.inputs, fresh.layers[0].output)
    loaded = det.experiment(experiment.id).load_into(fresh)
    assert loaded.batch == 15
    assert_equal(values_of(fresh), values_of(model))
    assert_equal(shared.get_weights(), model.get_weights()[:2])
    assert int(fresh.optimizer.iterations) == 15
    for each in (model, fresh):
        type(each).train_on_batch(each, X[:8], Y[:8])
    assert_equal(values_of(fresh), values_of(model))


def test_the_best_weights_that_are_put_back_at_the_end_are_those() -> None:
    # The best is the first: later epochs go away from it.
    keeping = keras.callbacks.EarlyStopping("loss", mode="max", patience=1, restore_best_weights=True)
    model = compiled(made())
    experiment = trained(model, epochs=4, callbacks=[keeping])
    fresh = made()
    experiment.load_into(fresh)
    assert_equal(fresh.get_weights(), model.get_weights())
    assert_equal(fresh.get_weights(), keeping.best_weights)


def test_a_model_that_waits_for_its_first_batch_is_built_by_its_call() -> None:
    model = compiled(made())
    experiment = trained(model)
    waiting = compiled(made(built=False))
    with pytest.raises(CheckpointError, match="has no weights yet to load into: call it on a batch"):
        experiment.load_into(waiting)
    call = call_of(waiting)
    drawn = np.random.get_state()[1].tolist()
    assert load_state(experiment, call, experiment.detail())[0].batch == 15
    assert np.random.get_state()[1].tolist() == drawn
    assert call.model is waiting
    assert_equal(values_of(waiting), values_of(model))


class Items(keras.utils.Sequence if hasattr(keras.utils, "Sequence") else keras.utils.PyDataset):  # type: ignore[misc]
    """Items of arrays, with targets of one dimension and double precision."""

    def __len__(self) -> int:
        return 5

    def __getitem__(self, index: int) -> Any:
        part = slice(8 * index, 8 * index + 8)
        return X[part], Y[part, 0].astype("float64")


@pytest.mark.long
def test_a_model_that_is_trained_on_a_sequence_has_its_metrics_and_is_evaluated() -> None:
    model = made()
    model.compile("sgd", "mse", metrics=["mae"])
    experiment = trained(model, x=Items())
    fresh = made()
    fresh.compile("sgd", "mse", metrics=["mae"])
    context = det.experimental.keras.init(CONFIG, local=True)
    call = FitCall.of(context, context.wrap_model(fresh), "fit", (Items(),), {"epochs": 3})
    load_state(det.experiment(experiment.id), call, experiment.detail())
    assert fresh.metrics_names == model.metrics_names
    assert fresh.evaluate(X, Y, verbose=0) == model.evaluate(X, Y, verbose=0)


@pytest.mark.long
def test_what_layers_draw_begins_after_a_compilation_as_in_the_process_that_trained() -> None:
    """Also those with a seed of their own, which give each operation of a graph the next one."""

    def dropping() -> Any:
        return compiled(keras.Sequential([keras.Input((6,)), keras.layers.Dropout(0.3, seed=4), keras.layers.Dense(1)]))

    def history(model: Any, *, anew: bool) -> Any:
        if anew:
            compiled(model, model.optimizer)
        return model.fit(X, Y, batch_size=8, epochs=2, shuffle=False, verbose=0).history["loss"]

    keras.utils.set_random_seed(3)
    for anew in (True, False):
        model, fresh = dropping(), dropping()
        experiment = trained(model, shuffle=False)
        load_state(experiment, call_of(fresh), experiment.detail())
        assert history(fresh, anew=anew) == history(model, anew=anew)


def test_a_model_without_a_compilation_gets_the_weights_and_can_be_compiled() -> None:
    model = compiled(made())
    experiment = trained(model)
    fresh = made()
    experiment.load_into(fresh)
    assert_equal(fresh.get_weights(), model.get_weights())
    compiled(fresh, keras.optimizers.SGD(0.1)).train_on_batch(X[:8], Y[:8])
    assert int(fresh.optimizer.iterations) == 1


class Pair(keras.Model):  # type: ignore[misc, name-defined]  # TensorFlow has no types
    """Two networks, each with an optimizer of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = keras.layers.Dense(4), keras.layers.Dense(1)
        self.first_optimizer, self.second_optimizer = keras.optimizers.Adam(0.01), keras.optimizers.RMSprop(0.01)

    def call(self, inputs: Any, training: bool = False) -> Any:
        return self.second(self.first(inputs))

    def train_step(self, data: Any) -> Any:
        x, y = data
        with tf.GradientTape(persistent=True) as tape:
            loss = tf.reduce_mean((self(x) - y) ** 2)
        for layer, optimizer in ((self.first, self.first_optimizer), (self.second, self.second_optimizer)):
            weights = layer.trainable_weights
            gradients = tape.gradient(loss, weights)
            optimizer.apply_gradients(zip(gradients, weights, strict=True))
        return {"loss": loss}


@pytest.mark.long
@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="its step is written in TensorFlow")
def test_optimizers_of_a_step_of_ones_own_are_made_and_filled() -> None:
    model, fresh = Pair(), Pair()
    model.compile(loss="mse")
    fresh.compile(loss="mse")
    experiment = trained(model)
    load_state(experiment, call_of(fresh), experiment.detail())
    both = [(each.first_optimizer, each.second_optimizer) for each in (fresh, model)]
    assert_equal(values_of(fresh, *both[0]), values_of(model, *both[1]))
    assert int(fresh.second_optimizer.iterations) == 15


@pytest.mark.long
def test_what_does_not_fit_is_refused_and_changes_nothing() -> None:
    experiment = trained(compiled(made()))
    wide, other = compiled(made(7)), compiled(made(), keras.optimizers.SGD(0.1))
    before = values_of(wide), values_of(other)
    with pytest.raises(CheckpointError, match=r"experiment's has 4 weights, .*\(6, 5\), this one has .*\(6, 7\)"):
        experiment.load_into(wide)
    with pytest.raises(CheckpointError, match="is SGD, the experiment trained with Adam"):
        experiment.load_into(other)
    with pytest.raises(CheckpointError, match="this one has only 2 weights"):
        experiment.load_into(keras.Sequential([keras.Input((6,)), keras.layers.Dense(5)]))
    with pytest.raises(ArgumentError, match=r"takes a Keras model, not a list"):
        experiment.load_into([wide])
    with pytest.raises(ArgumentError, match="leave optimizer= out"):
        experiment.load_into(wide, keras.optimizers.Adam())
    assert_equal(values_of(wide), before[0])
    assert_equal(values_of(other), before[1])


@pytest.mark.long
def test_what_fails_while_it_is_read_changes_nothing() -> None:
    """Of the same weights in another order of layers, only reading tells."""
    inputs = keras.Input((6,))
    model = compiled(keras.Model(inputs, keras.layers.Dense(1)(keras.layers.Dense(6)(inputs))))
    experiment = trained(model)
    fresh = compiled(
        keras.Sequential([keras.Input((6,)), keras.Sequential([keras.layers.Dense(6)]), keras.layers.Dense(1)])
    )
    before = values_of(fresh)
    with pytest.raises(CheckpointError, match="does not fit"):
        experiment.load_into(fresh)
    assert_equal(values_of(fresh)[: len(before)], before)


def texts_and_model() -> tuple[Any, Any]:
    """Return texts, and a model with the table of their words."""
    texts = tf.constant([["good film"], ["bad film"], ["so good"], ["so bad"]] * 10)
    words = keras.layers.TextVectorization(max_tokens=20, output_sequence_length=4)
    words.adapt(texts)
    inner = [words, keras.layers.Embedding(20, 4), keras.layers.GlobalAveragePooling1D(), keras.layers.Dense(1)]
    return texts, compiled(keras.Sequential([keras.Input((1,), dtype="string"), *inner]))


@pytest.mark.long
@only_keras_2
def test_a_table_of_words_in_the_model_is_no_variable() -> None:
    texts, model = texts_and_model()
    experiment = trained(model, x=tf.data.Dataset.from_tensor_slices((texts, Y)).batch(8), batch_size=None)
    _, fresh = texts_and_model()
    experiment.load_into(fresh)
    assert np.array_equal(fresh.predict(texts, verbose=0), model.predict(texts, verbose=0))
    assert int(fresh.optimizer.iterations) == 15
