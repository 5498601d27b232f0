"""TFKerasTrial: trained here from each kind of data, refused where it is wrong, loaded back."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
import pytest
import tensorflow as tf
from det_harness.frameworks.keras.data import make_feed
from det_harness.frameworks.keras.definition import call_of
from det_harness.frameworks.keras.epoch_lengths import EpochLengths
from keras_generation import only_keras_2

import det_native as det
from det_native.errors import (
    ArgumentError,
    ConfigurationError,
    DetError,
    InvalidDataError,
    TrialDefinitionError,
    UnsupportedFeatureError,
)
from det_native.keras import SequenceAdapter, TFKerasTrial
from det_native.schema.environment import Ranks, TrialEnvironment

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("recorded")]

RECORDS = 40
CONFIG: dict[str, Any] = {
    "hyperparameters": {"global_batch_size": 8, "units": 4},
    "searcher": {"name": "single", "metric": "val_loss", "max_length": {"epochs": 2}},
    "records_per_epoch": RECORDS,
    "min_validation_period": {"epochs": 1},
    "reproducibility": {"experiment_seed": 5},
}
X = np.random.default_rng(1).normal(size=(RECORDS, 6)).astype("float32")
Y = X[:, :3].argmax(1)


@pytest.fixture(autouse=True)
def no_names() -> None:
    """No layer names of earlier models."""
    tf.keras.backend.clear_session()


class Small(TFKerasTrial):
    """A small model on arrays."""

    def build_model(self) -> Any:
        layers = [tf.keras.Input((6,)), tf.keras.layers.Dense(self.context.get_hparam("units"), "relu")]
        model = self.context.wrap_model(tf.keras.Sequential([*layers, tf.keras.layers.Dense(3)]))
        loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        model.compile("adam", loss, metrics=["accuracy"], weighted_metrics=[])
        return model

    def build_training_data_loader(self) -> Any:
        return X, Y

    def build_validation_data_loader(self) -> Any:
        return X, Y


class Rows(tf.keras.utils.Sequence):
    """Batches of arrays, of eight rows if no other size is given."""

    def __init__(self, *arrays: Any, size: int = 8) -> None:
        self.arrays, self.size = arrays or (X, Y), size

    def __len__(self) -> int:
        return RECORDS // self.size

    def __getitem__(self, number: int) -> Any:
        return tuple(array[self.size * number : self.size * (number + 1)] for array in self.arrays)


def dataset(context: Any, *weights: Any) -> Any:
    """A Dataset, wrapped right after it is made."""
    rows = context.wrap_dataset(tf.data.Dataset.from_tensor_slices((X, Y, *weights)))
    return rows.batch(context.get_per_slot_batch_size())


HALVES = {"upper": X[:, :3], "lower": X[:, 3:]}
WEIGHTS = np.linspace(0.5, 1.5, RECORDS)
KINDS: dict[str, Any] = {
    "arrays": lambda context: (X, Y),
    "array-likes": lambda context: (tf.constant(X), Y.tolist()),
    "list": lambda context: ([*HALVES.values()], Y),
    "dictionary": lambda context: (HALVES, Y),
    "weights": lambda context: (X, Y, WEIGHTS),
    "dataset": dataset,
    "dataset, weights": lambda context: dataset(context, WEIGHTS),
    "sequence": lambda context: Rows(size=context.get_per_slot_batch_size()),
    "sequence, weights": lambda context: Rows(X, Y, WEIGHTS),
    "main-thread": lambda context: SequenceAdapter(Rows(), workers=0, use_multiprocessing=False),
    "threads": lambda context: SequenceAdapter(sequence=Rows(), workers=2, use_multiprocessing=False),
    "process": lambda context: SequenceAdapter(Rows(), workers=1, use_multiprocessing=True),
}


class OfHalves(Small):
    """A model with two inputs."""

    def build_model(self) -> Any:
        inputs = [tf.keras.Input((3,), name=name) for name in HALVES]
        hidden = tf.keras.layers.Dense(4, "relu")(tf.keras.layers.Concatenate()(inputs))
        model = self.context.wrap_model(tf.keras.Model(inputs, tf.keras.layers.Dense(3)(hidden)))
        model.compile("adam", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
        return model


@pytest.mark.parametrize(
    "kind",
    [pytest.param(kind, marks=[pytest.mark.long] * (kind not in ("arrays", "threads"))) for kind in KINDS],
)
def test_each_kind_of_data_trains_and_comes_back(kind: str) -> None:
    several = kind in ("list", "dictionary")

    class Trial(OfHalves if several else Small):  # type: ignore[misc]
        def build_training_data_loader(self) -> Any:
            return KINDS[kind](self.context)

        def build_validation_data_loader(self) -> Any:
            return KINDS[kind](self.context)

    experiment = det.experimental.create(Trial, CONFIG, local=True)
    assert str(experiment.state) == "Completed"
    assert [row["batch"] for row in experiment.trials[0].metrics("training")] == list(range(1, 11))
    history = experiment.history["val_loss"]
    assert len(history) == 2
    assert history[1] < history[0]
    model = experiment.top_checkpoint().load()
    weights = WEIGHTS if "weights" in kind else None
    loss = model.evaluate(HALVES if several else X, Y, sample_weight=weights, verbose=0, return_dict=True)["loss"]
    assert loss == pytest.approx(history[1], rel=1e-5)


@pytest.mark.parametrize("rank", [0, 1])
@pytest.mark.parametrize("kind", ["arrays", "dataset", "sequence"])
def test_each_process_of_a_trial_on_two_slots_has_its_part_of_a_batch(kind: str, rank: int) -> None:
    class Trial(Small):
        def build_training_data_loader(self) -> Any:
            return KINDS[kind](self.context)

    config = {**CONFIG, "resources": {"slots_per_trial": 2}}
    ranks = Ranks(rank=rank, size=2)
    environment = TrialEnvironment(config, CONFIG["hyperparameters"], trial_seed=3, ranks=ranks)
    call = call_of(Trial, environment)
    batches = make_feed(call, environment, EpochLengths(call.steps_per_epoch(environment))).arguments(0)["x"]
    x, y = next(iter(batches))
    assert len(x) == len(y) == 4


def test_a_generator_as_it_is_is_told_how_to_be_wrapped() -> None:
    def rows() -> Iterator[Any]:
        yield X[:8], Y[:8]

    told = r"{} a generator, .*tf\.data\.Dataset\.from_generator\(\).*a tf\.keras\.utils\.Sequence"
    with pytest.raises(InvalidDataError, match=told.format(r"SequenceAdapter\(\) was given")):
        SequenceAdapter(rows())
    for method in ("build_training_data_loader", "build_validation_data_loader"):
        wrong = type("Wrong", (Small,), {method: lambda trial: rows()})
        with pytest.raises(InvalidDataError, match=told.format(rf"Wrong\.{method}\(\) returned")):
            det.experimental.create(wrong, CONFIG, local=True)


def test_each_adapter_says_how_its_own_data_are_read() -> None:
    class Validating(Small):
        def build_validation_data_loader(self) -> Any:
            return SequenceAdapter(Rows(), workers=2, max_queue_size=4)

    class Both(Validating):
        def build_training_data_loader(self) -> Any:
            return SequenceAdapter(Rows(), workers=0)

    environment = TrialEnvironment(CONFIG, CONFIG["hyperparameters"], trial_seed=3)
    for kind, workers in ((Both, 0), (Validating, 1)):
        call = call_of(kind, environment)
        assert call.arguments["workers"] == workers
        assert call.validation_queue == {"workers": 2, "max_queue_size": 4, "use_multiprocessing": False}


@pytest.mark.long
def test_a_checkpoint_is_loaded_where_the_data_are_not() -> None:
    class Trial(Small):
        there = True

        def build_training_data_loader(self) -> Any:
            assert self.there, "the data are elsewhere"
            return X, Y

        def build_validation_data_loader(self) -> Any:
            return self.build_training_data_loader()

    experiment = det.experimental.create(Trial, CONFIG, local=True)
    Trial.there = False
    model = experiment.top_checkpoint().load()
    assert model.evaluate(X, Y, verbose=0)[0] == pytest.approx(min(experiment.history["val_loss"]), rel=1e-5)


class Threads(Rows):
    """Notes in which threads it is read."""

    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()

    def __getitem__(self, number: int) -> Any:
        self.names.add(threading.current_thread().name)
        return super().__getitem__(number)


@pytest.mark.long
@pytest.mark.parametrize("workers", [(2, 0), (0, 3)])
def test_validation_data_are_read_in_as_many_threads_as_their_adapter_says(workers: tuple[int, int]) -> None:
    training, validation = Threads(), Threads()

    class Trial(Small):
        def build_training_data_loader(self) -> Any:
            return SequenceAdapter(training, workers=workers[0])

        def build_validation_data_loader(self) -> Any:
            return SequenceAdapter(validation, workers=workers[1])

    experiment = det.experimental.create(Trial, CONFIG, local=True)
    assert len(experiment.history["val_loss"]) == 2
    for sequence, count in zip((training, validation), workers, strict=True):
        # Without workers, a thread of TensorFlow's own reads, which Python calls a dummy.
        started = [name for name in sequence.names if not name.startswith(("Dummy", "MainThread"))]
        assert bool(started) == (count > 1), sequence.names


@pytest.mark.long
@only_keras_2
def test_validation_data_are_read_in_processes_where_their_adapter_says_so() -> None:
    asked: list[Any] = []

    class Noting(tf.keras.Sequential):  # type: ignore[misc]  # TensorFlow has no types
        def evaluate(self, *args: Any, **given: Any) -> Any:
            asked.append((given["use_multiprocessing"], given["workers"], given["_use_cached_eval_dataset"]))
            return super().evaluate(*args, **{**given, "use_multiprocessing": False, "workers": 1})

    class Trial(Small):
        def build_model(self) -> Any:
            model = self.context.wrap_model(Noting([tf.keras.Input((6,)), tf.keras.layers.Dense(3)]))
            model.compile("adam", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
            return model

        def build_training_data_loader(self) -> Any:
            return SequenceAdapter(Rows(), workers=0)

        def build_validation_data_loader(self) -> Any:
            return SequenceAdapter(Rows(), workers=2, use_multiprocessing=True)

    det.experimental.create(Trial, CONFIG, local=True)
    assert asked == [(True, 2, False)] * 2


@pytest.mark.long
def test_what_configure_fit_says_reaches_keras() -> None:
    class Weighted(Small):
        def __init__(self, context: Any) -> None:
            super().__init__(context)
            context.configure_fit(class_weight={0: 0.0, 1: 0.0, 2: 0.0})
            context.configure_fit(verbose=0, shuffle=False)

    experiment = det.experimental.create(Weighted, CONFIG, local=True)
    assert {row["loss"] for row in experiment.trials[0].metrics("training")} == {0.0}


def unwrapped_model(trial: Small) -> Any:
    return tf.keras.Sequential([tf.keras.layers.Dense(3)])


def uncompiled_model(trial: Small) -> Any:
    return trial.context.wrap_model(tf.keras.Sequential([tf.keras.layers.Dense(3)]))


def another_model(trial: Small) -> Any:
    Small.build_model(trial)
    return unwrapped_model(trial)


def two_models(trial: Small) -> Any:
    Small.build_model(trial)
    return Small.build_model(trial)


def twice_wrapped(trial: Small) -> Any:
    return trial.context.wrap_model(Small.build_model(trial))


WRONG: list[tuple[str, Any, type[DetError], str]] = [
    ("build_model", unwrapped_model, TrialDefinitionError, r"a model that is not wrapped: call model = self\.context"),
    ("build_model", uncompiled_model, TrialDefinitionError, r"not compiled: call model\.compile"),
    ("build_model", another_model, TrialDefinitionError, "returned another model than the one"),
    ("build_model", two_models, TrialDefinitionError, "was called for two models"),
    ("build_model", twice_wrapped, TrialDefinitionError, r"called twice for the model 'sequential\w*': call it once"),
    ("build_model", lambda trial: None, TrialDefinitionError, "returned None; return the compiled model"),
    ("build_training_data_loader", lambda trial: (X, Y[:9]), InvalidDataError, "x has 40; y has 9 records"),
    ("build_training_data_loader", lambda trial: None, InvalidDataError, "returned None; return the data"),
    ("build_training_data_loader", lambda trial: X, InvalidDataError, "returned ndarray; return"),
    ("build_validation_data_loader", lambda trial: (X,), InvalidDataError, "returned tuple of 1 parts; return"),
    (
        "build_training_data_loader",
        lambda trial: tf.data.Dataset.from_tensor_slices((X, Y)).batch(8),
        InvalidDataError,
        r"a Dataset that is not wrapped: call dataset = self\.context\.wrap_dataset",
    ),
    (
        "build_training_data_loader",
        lambda trial: trial.context.wrap_dataset(dataset(trial.context).prefetch(1)),
        InvalidDataError,
        r"a Dataset that is made of a wrapped one: .* Call it once, right after the Dataset is made",
    ),
    (
        "build_validation_data_loader",
        lambda trial: None,
        InvalidDataError,
        "build_validation_data_loader.. returned None",
    ),
    ("build_validation_data_loader", lambda trial: (X[:0], Y[:0]), InvalidDataError, "validation_data has no records"),
    ("keras_callbacks", lambda trial: [print], ArgumentError, "callbacks must be instances of tf.keras.callbacks"),
]


@pytest.mark.long
@pytest.mark.parametrize(("method", "body", "kind", "told"), WRONG)
def test_what_is_wrong_is_told_before_the_training(method: str, body: Any, kind: type[DetError], told: str) -> None:
    wrong = type("Wrong", (Small,), {method: body})
    with pytest.raises(kind, match=told):
        det.experimental.create(wrong, CONFIG, local=True)


@pytest.mark.long
@pytest.mark.parametrize(
    ("metric", "told"), [("accuracy", "set it to 'val_accuracy'"), ("val_acc", "val_loss, val_accuracy")]
)
def test_a_metric_that_is_not_reported_is_told(metric: str, told: str) -> None:
    with pytest.raises(TrialDefinitionError, match=told):
        det.experimental.create(Small, {**CONFIG, "searcher": {**CONFIG["searcher"], "metric": metric}}, local=True)


def test_a_class_without_its_methods_is_told() -> None:
    class Empty(TFKerasTrial):
        pass

    class WithModel(Small):
        def build_model(self, hparams: Any) -> Any:  # type: ignore[override]
            return None

    with pytest.raises(TrialDefinitionError, match=r"Empty lacks build_model\(\), build_training_data_loader\(\)"):
        det.experimental.create(Empty, CONFIG, local=True)
    with pytest.raises(TrialDefinitionError, match=r"must take \(self\) only"):
        det.experimental.create(WithModel, CONFIG, local=True)


@pytest.mark.parametrize(
    ("config", "kind", "told"),
    [
        (
            {"resources": {"native_parallel": True}},
            UnsupportedFeatureError,
            "native_parallel: true is refused: a model of",
        ),
        ({"optimizations": {"native_parallel": True}}, ConfigurationError, "native_parallel"),
    ],
)
@pytest.mark.filterwarnings("ignore:These fields of the configuration have no effect")
def test_native_parallel_is_refused(config: dict[str, Any], kind: type[DetError], told: str) -> None:
    with pytest.raises(kind, match=told):
        det.experimental.create(Small, CONFIG | config, local=True)


@pytest.mark.long
def test_a_metric_that_the_training_alone_can_tell_is_missed_after_its_first_validation() -> None:
    class Own(tf.keras.Model):
        def __init__(self) -> None:
            super().__init__()
            self.dense = tf.keras.layers.Dense(3)

        def call(self, rows: Any) -> Any:
            return self.dense(rows)

        def test_step(self, data: Any) -> Any:
            return {"error": tf.reduce_mean(self(data[0]))}

    class Trial(Small):
        def build_model(self) -> Any:
            model = self.context.wrap_model(Own())
            model.compile("adam", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
            return model

    with pytest.raises(DetError, match=r"'val_loss'.*val_error"):
        det.experimental.create(Trial, CONFIG, local=True)


class TestSequenceAdapter:
    """What it refuses."""

    wrong: ClassVar = [
        ({"data": [1, 2]}, InvalidDataError, "takes a tf.keras.utils.Sequence, not list"),
        ({"data": Rows(), "sequence": Rows()}, ArgumentError, "the same argument"),
        ({"data": Rows(), "workers": -1}, ArgumentError, "workers=-1 must be at least 0"),
    ]

    @pytest.mark.parametrize(("given", "kind", "told"), wrong)
    def test_wrong_arguments_are_told(self, given: dict[str, Any], kind: type[DetError], told: str) -> None:
        with pytest.raises(kind, match=told):
            SequenceAdapter(**given)

    def test_it_is_as_long_as_its_sequence(self) -> None:
        assert len(SequenceAdapter(Rows())) == 5
