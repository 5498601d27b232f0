"""A wrapped model's ``fit`` is Keras's: each argument does what it does there, and models see what they see there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse
import tensorflow as tf

import det_native as det
from det_native.errors import TrialDefinitionError

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("recorded")]

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(50, 6)).astype("float32")
Y = (X[:, 0] > 0).astype("int64")
WEIGHTS = np.linspace(0.1, 3.0, 50)
HELD_OUT = (X[:20], Y[:20])


@pytest.fixture(autouse=True)
def no_names() -> None:
    """No layer names of earlier models."""
    tf.keras.backend.clear_session()


def dataset() -> Any:
    return tf.data.Dataset.from_tensor_slices((X, Y)).batch(10)


def classifier() -> Any:
    tf.keras.utils.set_random_seed(1)
    model = tf.keras.Sequential(
        [tf.keras.Input((6,)), tf.keras.layers.Dense(8, "relu"), tf.keras.layers.Dense(2)], name="classifier"
    )
    return model


def compiled(model: Any, **arguments: Any) -> Any:
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(tf.keras.optimizers.Adam(0.01), loss, metrics=["accuracy"], weighted_metrics=[], **arguments)
    return model


def fitted(make: Callable[[], Any], arguments: dict[str, Any], *, wrap: bool) -> tuple[Any, Any]:
    """Return history and model of a training, by Keras alone or by det_native."""
    context = det.experimental.keras.init(local=True) if wrap else None
    model = make()
    model = compiled(model if context is None else context.wrap_model(model))
    given = {"shuffle": False, "verbose": 0, **arguments}
    called = {name: value() if callable(value) and name != "callback" else value for name, value in given.items()}
    return model.fit(**called), model


def assert_same(ours: tuple[Any, Any], keras: tuple[Any, Any]) -> None:
    (history, model), (expected, plain) = ours, keras
    assert history.epoch == expected.epoch
    assert history.history.keys() == expected.history.keys()
    for name, values in expected.history.items():
        assert history.history[name] == pytest.approx(values, rel=1e-5)
    for mine, theirs in zip(model.get_weights(), plain.get_weights(), strict=True):
        assert mine == pytest.approx(theirs, rel=1e-4, abs=1e-6)


def test_validation_weights_and_epochs_together_do_what_they_do_in_plain_keras() -> None:
    arguments = {"x": X, "y": Y, "sample_weight": WEIGHTS, "validation_split": 0.3, "validation_freq": 2}
    arguments |= {"initial_epoch": 1, "epochs": 4, "batch_size": 9, "validation_batch_size": 4}
    assert_same(fitted(classifier, arguments, wrap=True), fitted(classifier, arguments, wrap=False))


class TwoLayers(tf.keras.Model):  # type: ignore[misc]  # TensorFlow has no types
    """A subclassed model."""

    def __init__(self, units: int = 8, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.first, self.second = tf.keras.layers.Dense(units, "relu"), tf.keras.layers.Dense(2)

    def call(self, inputs: Any, training: Any = None) -> Any:
        return self.second(self.first(inputs))


def functional() -> Any:
    tf.keras.utils.set_random_seed(1)
    inputs = tf.keras.Input((6,))
    wide = tf.keras.layers.Dense(8, "relu")(inputs)
    return tf.keras.Model(inputs, tf.keras.layers.Dense(2)(tf.keras.layers.concatenate([inputs, wide])))


def lazy() -> Any:
    tf.keras.utils.set_random_seed(1)
    return tf.keras.Sequential([tf.keras.layers.Dense(8, "relu"), tf.keras.layers.Dense(2)])


def subclassed() -> Any:
    tf.keras.utils.set_random_seed(1)
    return TwoLayers()


@pytest.mark.parametrize(
    "make", [functional, *(pytest.param(make, marks=pytest.mark.soak) for make in (lazy, subclassed))]
)
def test_models_of_each_kind_train_are_used_and_come_back(make: Callable[[], Any]) -> None:
    context = det.experimental.keras.init(local=True)
    model = compiled(context.wrap_model(make()))
    before = model.evaluate(X, Y, verbose=0)
    assert model.predict(X[:3], verbose=0).shape == (3, 2)
    history = model.fit(X, Y, epochs=4, verbose=0, validation_data=HELD_OUT)
    after = model.evaluate(X, Y, verbose=0, return_dict=True)
    assert after["loss"] < before[0]
    assert model.evaluate(*HELD_OUT, verbose=0)[0] == pytest.approx(history.history["val_loss"][-1], rel=1e-5)
    predicted, steps = model.predict(X, verbose=0), int(model.optimizer.iterations)
    moments = [variable.numpy() for variable in model.optimizer.variables]

    experiment = context.experiment
    model.fit(X, Y, verbose=0)  # another experiment: the best model of the first is none of its weights any more
    first = experiment.top_checkpoint().load()
    assert np.array_equal(first.predict(X, verbose=0), predicted)
    assert int(first.optimizer.iterations) == steps
    for found, expected in zip(first.optimizer.variables, moments, strict=True):
        assert np.array_equal(found.numpy(), expected)
    assert first.evaluate(X, Y, verbose=0)[0] == pytest.approx(after["loss"], rel=1e-5)


class Autoencoder(tf.keras.Model):  # type: ignore[misc]  # TensorFlow has no types
    """The variational autoencoder of Keras's examples: no call(), and a train_step() that takes a tensor."""

    def __init__(self) -> None:
        super().__init__()
        inputs, codes = tf.keras.Input((6,)), tf.keras.Input((2,))
        mean, log_variance = tf.keras.layers.Dense(2)(inputs), tf.keras.layers.Dense(2)(inputs)
        self.encoder = tf.keras.Model(inputs, [mean, log_variance])
        self.decoder = tf.keras.Model(codes, tf.keras.layers.Dense(6)(codes))
        self.total, self.distance = tf.keras.metrics.Mean("total_loss"), tf.keras.metrics.Mean("distance")

    @property
    def metrics(self) -> Any:
        return [self.total, self.distance]

    def train_step(self, data: Any) -> Any:
        assert isinstance(data, tf.Tensor)
        with tf.GradientTape() as tape:
            mean, log_variance = self.encoder(data)
            noise = tf.random.stateless_normal(tf.shape(mean), [1, self.optimizer.iterations])
            decoded = self.decoder(mean + tf.exp(0.5 * log_variance) * noise)
            distance = tf.reduce_mean(tf.reduce_sum(tf.square(data - decoded), axis=1))
            divergence = -0.5 * tf.reduce_mean(1 + log_variance - tf.square(mean) - tf.exp(log_variance))
            loss = distance + divergence
        gradients = tape.gradient(loss, self.trainable_weights)
        self.optimizer.apply_gradients(zip(gradients, self.trainable_weights))  # noqa: B905 (TensorFlow's takes none)
        self.total.update_state(loss)
        self.distance.update_state(distance)
        return {"loss": self.total.result(), "distance": self.distance.result()}


def autoencoder() -> Any:
    tf.keras.utils.set_random_seed(1)
    return Autoencoder()


@pytest.mark.long
def test_a_variational_autoencoder_gets_a_tensor_and_trains_as_in_plain_keras() -> None:
    arguments = {"x": X, "epochs": 3, "batch_size": 10}
    ours = fitted(autoencoder, arguments, wrap=True)
    assert_same(ours, fitted(autoencoder, arguments, wrap=False))
    assert ours[0].history["loss"][-1] < ours[0].history["loss"][0]


DATA: dict[str, dict[str, Any]] = {
    "x": {"x": X},
    "x and y": {"x": X, "y": Y},
    "weights": {"x": X, "y": Y, "sample_weight": WEIGHTS},
    "two inputs": {"x": [X, X]},
    "named inputs": {"x": {"first": X, "second": X}},
    "sparse": {"x": tf.sparse.from_dense(X)},
    "generator": {"x": lambda: iter([X[:10], X[10:20]] * 2), "steps_per_epoch": 2},
}


@pytest.mark.long
@pytest.mark.parametrize("name", DATA)
def test_a_train_step_sees_what_keras_passes(name: str) -> None:
    class Looking(tf.keras.Model):  # type: ignore[misc]  # TensorFlow has no types
        def train_step(self, data: Any) -> Any:
            shapes = tf.nest.map_structure(lambda part: part.shape[1:], data)
            seen.append((type(data), str(shapes)))
            return {"loss": tf.constant(0.0)}

        test_step = train_step

    found = []
    for wrap in (True, False):
        seen: list[Any] = []
        arguments = {"validation_data": (X,), **DATA[name]}
        model = fitted(Looking, arguments, wrap=wrap)[1]
        found.append(seen)
        assert not model.trainable_weights
    assert set(found[0]) == set(found[1])


class Duel(tf.keras.Model):  # type: ignore[misc]  # TensorFlow has no types
    """Two networks with an optimizer each, as in Keras's generative adversarial examples: no loss, no call()."""

    def __init__(self) -> None:
        super().__init__()
        self.critic = tf.keras.Sequential([tf.keras.Input((6,)), tf.keras.layers.Dense(1)])
        self.forger = tf.keras.Sequential([tf.keras.Input((6,)), tf.keras.layers.Dense(6)])

    def compile(self, d_optimizer: Any, g_optimizer: Any) -> None:
        super().compile()
        self.d_optimizer, self.g_optimizer = d_optimizer, g_optimizer

    def train_step(self, data: Any) -> Any:
        with tf.GradientTape(persistent=True) as tape:
            forged = self.critic(self.forger(data))
            d_loss = tf.reduce_mean(tf.nn.softplus(forged) + tf.nn.softplus(-self.critic(data)))
            g_loss = tf.reduce_mean(tf.nn.softplus(-forged))
        for optimizer, loss, part in ((self.d_optimizer, d_loss, self.critic), (self.g_optimizer, g_loss, self.forger)):
            optimizer.apply_gradients([(tape.gradient(loss, weight), weight) for weight in part.trainable_weights])
        return {"d_loss": d_loss, "g_loss": g_loss}

    def test_step(self, data: Any) -> Any:
        return {"realism": tf.reduce_mean(self.critic(data))}


def duel(config: Any = None, **arguments: Any) -> Any:
    context = det.experimental.keras.init(config, local=True)
    model = context.wrap_model(Duel())
    model.compile(tf.keras.optimizers.Adam(0.01), tf.keras.optimizers.Adam(0.02))
    try:
        model.fit(X, epochs=2, batch_size=10, verbose=0, **arguments)
    finally:
        model.experiment = context.experiment
    return model


@pytest.mark.long
def test_without_a_loss_the_first_metric_is_taken_after_the_first_batch_and_named(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Look(tf.keras.callbacks.Callback):
        def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
            named.append("'d_loss'" in caplog.text)

    named: list[bool] = []
    model = duel(callbacks=[Look()])
    assert named == [False, *[True] * 9]
    assert "fit() reports no 'loss': trials are compared by its first metric, 'd_loss'" in caplog.text
    experiment = model.experiment
    assert experiment.config["searcher"]["metric"] == "d_loss"
    best = experiment.top_checkpoint()
    assert best.metrics["d_loss"] == pytest.approx(experiment.history["d_loss"][-1])
    loaded = best.load()
    assert [int(one.iterations) for one in (loaded.d_optimizer, loaded.g_optimizer, loaded.optimizer)] == [10, 10, 0]


@pytest.mark.long
def test_sample_weights_without_targets_change_nothing_as_in_keras() -> None:
    weighted = duel(validation_data=(X,), sample_weight=np.zeros(len(X)), shuffle=False)
    plain = Duel()
    plain.compile(tf.keras.optimizers.Adam(0.01), tf.keras.optimizers.Adam(0.02))
    kept = plain.fit(X, batch_size=10, epochs=2, verbose=0, sample_weight=np.zeros(len(X)), shuffle=False)
    assert min(kept.history["d_loss"]) > 0
    assert min(weighted.experiment.history["d_loss"]) > 0


class Scored(Duel):
    def test_step(self, data: Any) -> Any:
        return {"accuracy": tf.cast(self.scored.assign_add(1.0), tf.float32)}

    def __init__(self) -> None:
        super().__init__()
        self.scored = tf.Variable(0.0, trainable=False)


@pytest.mark.long
def test_greater_values_of_an_accuracy_that_nobody_named_are_better(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(f"{__name__}.Duel", Scored)
    experiment = duel(validation_data=(X,)).experiment
    assert "first metric, 'val_accuracy'; a greater value is better" in caplog.text
    assert experiment.config["searcher"]["smaller_is_better"] is False
    assert experiment.top_checkpoint().metrics == {"val_accuracy": max(experiment.history["val_accuracy"])}


@pytest.mark.long
def test_of_a_validation_too_the_first_metric_is_taken() -> None:
    experiment = duel(validation_data=(X,)).experiment
    assert experiment.config["searcher"]["metric"] == "val_realism"
    assert experiment.top_checkpoint().metrics.keys() == {"val_realism"}


@pytest.mark.long
def test_a_metric_that_was_asked_for_is_missed_after_the_first_batch() -> None:
    with pytest.raises(TrialDefinitionError, match=r"'loss', but the training of model.fit\(\) reports d_loss, g_loss"):
        duel({"searcher": {"name": "single", "metric": "loss", "max_length": {"epochs": 2}}})
    assert [row["batch"] for row in det.last_experiment().trials[0].metrics("training")] == [1]


class OfNumpy(tf.keras.initializers.Initializer):  # type: ignore[misc]  # TensorFlow has no types
    """Weights that numpy draws."""

    def __call__(self, shape: Any, dtype: Any = None, **kwargs: Any) -> Any:
        return tf.constant(np.random.normal(size=shape), dtype)


SEEDS: dict[str, tuple[Callable[[], Any], Any]] = {
    "keras.utils.set_random_seed": (lambda: tf.keras.utils.set_random_seed(7), "glorot_uniform"),
    "tf.random.set_seed": (lambda: tf.random.set_seed(7), lambda shape, dtype: tf.random.normal(shape, dtype=dtype)),
    "numpy.random.seed": (lambda: np.random.seed(7), OfNumpy()),
}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.soak] * (place > 0)) for place, name in enumerate(SEEDS)]
)
def test_a_model_that_waits_for_its_first_batch_has_the_weights_of_the_users_seed(name: str) -> None:
    seed, initializer = SEEDS[name]

    def make() -> Any:
        seed()
        layers = [tf.keras.layers.Dense(units, kernel_initializer=initializer) for units in (3, 2)]
        return tf.keras.Sequential([*layers])

    arguments = {"x": X, "y": Y, "callbacks": [tf.keras.callbacks.LearningRateScheduler(lambda epoch: 0.0)]}
    assert_same(fitted(make, arguments, wrap=True), fitted(make, arguments, wrap=False))


def test_what_is_typed_wrong_is_told_in_a_sentence() -> None:
    model = compiled(det.experimental.keras.init(local=True).wrap_model(TwoLayers()))
    with pytest.raises(TypeError, match=r"^fit\(\) takes no argument 'epoch'\. Did you mean epochs\?$"):
        model.fit(X, Y, epoch=2)
    with pytest.raises(ValueError, match="units"):
        det.experimental.keras.init(local=True).wrap_model(TwoLayers(units=-1))


class Pairs(tf.keras.utils.Sequence):  # type: ignore[misc]
    def __len__(self) -> int:
        return 6

    def __getitem__(self, index: int) -> Any:
        rows = slice(10 * index, 10 * index + 10)
        return X[rows], Y[rows]


@pytest.mark.parametrize(
    "kind",
    ["dataset", *(pytest.param(kind, marks=pytest.mark.soak) for kind in ("weighted dataset", "sparse", "sequence"))],
)
def test_weights_of_classes_count_whatever_the_data_are(kind: str) -> None:
    given: dict[str, dict[str, Any]] = {
        "dataset": {"x": lambda: dataset()},
        "weighted dataset": {"x": lambda: tf.data.Dataset.from_tensor_slices((X, Y, WEIGHTS)).batch(10, True)},
        "sparse": {"x": scipy.sparse.csr_matrix(X), "y": Y, "batch_size": 10},
        "sequence": {"x": Pairs},
    }
    arguments = {"epochs": 2, "class_weight": {0: 0.2, 1: 3.0}, **given[kind]}
    ours = fitted(classifier, arguments, wrap=True)
    assert_same(ours, fitted(classifier, arguments, wrap=False))
    unweighted, _ = fitted(classifier, {**arguments, "class_weight": None}, wrap=False)
    assert ours[0].history["loss"] != pytest.approx(unweighted.history["loss"])


@pytest.mark.long
def test_a_metric_of_several_values_is_in_the_history_and_in_the_rows(caplog: pytest.LogCaptureFixture) -> None:
    def compiled_with(model: Any) -> Any:
        loss = tf.keras.losses.CategoricalCrossentropy(from_logits=True)
        model.compile("sgd", loss, metrics=[tf.keras.metrics.F1Score()])
        return model

    labels = tf.one_hot(Y, 2).numpy()
    context = det.experimental.keras.init(local=True)
    model = compiled_with(context.wrap_model(classifier()))
    history = model.fit(X, labels, epochs=2, shuffle=False, verbose=0, validation_data=(X, labels)).history
    plain = compiled_with(classifier()).fit(X, labels, epochs=2, shuffle=False, verbose=0, validation_data=(X, labels))
    for name, values in plain.history.items():
        assert np.allclose(history[name], values, rtol=1e-4), name
    recorded = [row["val_f1_score"] for row in context.experiment.trials[0].metrics("validation")]
    assert np.allclose(recorded, plain.history["val_f1_score"], rtol=1e-4)
    assert context.experiment.top_checkpoint().metrics["val_f1_score"] in recorded
    assert "not recorded" not in caplog.text
