"""Each kind of data that a loader may return, on real digits: they all reach the accuracy that the arrays reach.

The data are the same, the order and the random numbers are not: what is compared is the accuracy, within `NOISE`.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from det_harness.frameworks.keras.data import make_feed
from det_harness.frameworks.keras.definition import call_of
from det_harness.frameworks.keras.epoch_lengths import EpochLengths
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import det_native as det
from det_native.errors import InvalidDataError
from det_native.keras import SequenceAdapter, TFKerasTrial
from det_native.schema.environment import Ranks, TrialEnvironment

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("recorded")]

DIGITS = load_digits()
X_TRAIN, X_VAL, Y_TRAIN, Y_VAL = train_test_split(
    (DIGITS.data / 16.0).astype("float32"),
    DIGITS.target.astype("int64"),
    test_size=0.2,
    random_state=0,
    stratify=DIGITS.target,
)
BATCH_SIZE, EPOCHS = 32, 5
STEPS = -(-len(X_TRAIN) // BATCH_SIZE)
# Neither is a multiple of the batch size: the last batches are smaller.
assert len(X_TRAIN) % BATCH_SIZE
assert len(X_VAL) % BATCH_SIZE
# By the seed alone, plain Keras reaches from 0.942 to 0.961 on the arrays (ten seeds).
NOISE = 0.03
CONFIG: dict[str, Any] = {
    "hyperparameters": {"global_batch_size": BATCH_SIZE},
    "searcher": {
        "name": "single",
        "metric": "val_accuracy",
        "smaller_is_better": False,
        "max_length": {"epochs": EPOCHS},
    },
    "records_per_epoch": len(X_TRAIN),
    "min_validation_period": {"epochs": EPOCHS},
    "reproducibility": {"experiment_seed": 3},
}


@pytest.fixture(autouse=True)
def home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """A home of the test's own, and no layer names of earlier models."""
    monkeypatch.setenv("DET_HOME", str(tmp_path_factory.mktemp("home")))
    tf.keras.backend.clear_session()


def spoilt(y: Any) -> tuple[Any, Any]:
    """Return labels of which a fifth are wrong, and weights that leave those out."""
    wrong = np.arange(len(y)) % 5 == 0
    return np.where(wrong, (y + 1) % 10, y), np.where(wrong, 0.0, 1.25).astype("float32")


class Rows(tf.keras.utils.Sequence):  # type: ignore[misc]  # TensorFlow has no types
    """Batches of arrays; other processes get it by pickle."""

    def __init__(self, *arrays: Any, size: int) -> None:
        self.arrays, self.size = arrays, size

    def __len__(self) -> int:
        return -(-len(self.arrays[0]) // self.size)

    def __getitem__(self, number: int) -> Any:
        return tuple(array[number * self.size : (number + 1) * self.size] for array in self.arrays)


def dataset(context: Any, *arrays: Any) -> Any:
    rows = context.wrap_dataset(tf.data.Dataset.from_tensor_slices(arrays))
    return rows.shuffle(len(arrays[0]), seed=1).batch(context.get_per_slot_batch_size())


def generated(context: Any, x: Any, y: Any) -> Any:
    """A generator, wrapped as TensorFlow wraps it."""

    def rows() -> Iterator[Any]:
        yield from zip(x, y, strict=True)

    signature = (tf.TensorSpec((64,), "float32"), tf.TensorSpec((), "int64"))
    made = tf.data.Dataset.from_generator(rows, output_signature=signature)
    made = made.apply(tf.data.experimental.assert_cardinality(len(x)))  # or an epoch is a whole number of batches
    return context.wrap_dataset(made).batch(context.get_per_slot_batch_size())


def sequence(context: Any, *arrays: Any) -> Rows:
    return Rows(*arrays, size=context.get_per_slot_batch_size())


def halves(x: Any) -> list[Any]:
    return [x[:, :32], x[:, 32:]]


def named(x: Any) -> dict[str, Any]:
    return dict(zip(("upper", "lower"), halves(x), strict=True))


KINDS: dict[str, Any] = {
    "tuple of arrays": lambda context, x, y: (x, y),
    "tuple with a list of arrays": lambda context, x, y: (halves(x), y),
    "tuple with a dictionary of arrays": lambda context, x, y: (named(x), y),
    "tuple with array-likes": lambda context, x, y: (tf.constant(x), y.tolist()),
    "tuple with sample weights": lambda context, x, y: (x, *spoilt(y)),
    "tuple with a dictionary and sample weights": lambda context, x, y: (named(x), *spoilt(y)),
    "tf.data.Dataset": dataset,
    "tf.data.Dataset with sample weights": lambda context, x, y: dataset(context, x, *spoilt(y)),
    "tf.data.Dataset of a generator": generated,
    "keras.utils.Sequence": sequence,
    "keras.utils.Sequence with sample weights": lambda context, x, y: sequence(context, x, *spoilt(y)),
    "SequenceAdapter(sequence, workers=0, use_multiprocessing=False)": lambda context, x, y: SequenceAdapter(
        sequence(context, x, y), workers=0, use_multiprocessing=False
    ),
    "SequenceAdapter(sequence, workers=1, use_multiprocessing=True)": lambda context, x, y: SequenceAdapter(
        sequence(context, x, y), workers=1, use_multiprocessing=True
    ),
    "SequenceAdapter(sequence, workers=2, use_multiprocessing=False)": lambda context, x, y: SequenceAdapter(
        sequence=sequence(context, x, y), workers=2, use_multiprocessing=False
    ),
}


class Counted(tf.keras.metrics.Sum):  # type: ignore[misc]  # TensorFlow has no types
    """How many records an epoch or a validation has had."""

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> Any:
        return super().update_state(tf.ones_like(y_true, "float32"))


def trial_of(kind: str) -> type[TFKerasTrial]:
    """Return a trial whose loaders return data of a kind, in training and in validation."""

    class Trial(TFKerasTrial):
        def build_model(self) -> Any:
            inputs: Any = tf.keras.Input((64,))
            first = inputs
            if "list" in kind or "dictionary" in kind:
                inputs = [tf.keras.Input((32,), name="upper"), tf.keras.Input((32,), name="lower")]
                first = tf.keras.layers.Concatenate()(inputs)
            output = tf.keras.layers.Dense(10, "softmax")(tf.keras.layers.Dense(64, "relu")(first))
            model = self.context.wrap_model(tf.keras.Model(inputs, output))
            optimizer = tf.keras.optimizers.Adam(0.003)
            seen = Counted(name="records")
            model.compile(optimizer, "sparse_categorical_crossentropy", metrics=[seen], weighted_metrics=["accuracy"])
            return model

        def build_training_data_loader(self) -> Any:
            return KINDS[kind](self.context, X_TRAIN, Y_TRAIN)

        def build_validation_data_loader(self) -> Any:
            return KINDS[kind](self.context, X_VAL, Y_VAL)

    return Trial


@functools.cache
def accuracy_in_plain_keras() -> float:
    """Return what Keras's own fit reaches on the arrays."""
    tf.keras.utils.set_random_seed(3)
    context: Any = trial_of("tuple of arrays").trial_context_class.from_config(CONFIG)
    trial = trial_of("tuple of arrays")(context)
    model = trial.build_model()
    model.fit(X_TRAIN, Y_TRAIN, BATCH_SIZE, EPOCHS, verbose=0)
    return float(model.evaluate(X_VAL, Y_VAL, verbose=0, return_dict=True)["accuracy"])


# Of the others `make test` has test_trial.py, which trains a little on each.
SOON = ("tuple with a dictionary and sample weights", "tf.data.Dataset")


@pytest.mark.parametrize("kind", [pytest.param(kind, marks=() if kind in SOON else pytest.mark.soak) for kind in KINDS])
def test_each_kind_reaches_the_same_accuracy(kind: str) -> None:
    experiment = det.experimental.create(trial_of(kind), CONFIG, local=True, show="none")
    assert str(experiment.state) == "Completed"
    (trial,) = experiment.trials
    rows = trial.metrics("training")
    (validated,) = trial.metrics("validation")
    # Each epoch has all records once, each validation too: the last batch, a smaller one, is there.
    assert [row["batch"] for row in rows] == list(range(1, STEPS * EPOCHS + 1))
    assert {row["records"] for row in rows[STEPS - 1 :: STEPS]} == {len(X_TRAIN)}
    assert validated["val_records"] == len(X_VAL)
    reached = validated["val_accuracy"]
    assert reached == pytest.approx(accuracy_in_plain_keras(), abs=NOISE)
    # The validation of this kind says what a model is worth.
    model = experiment.top_checkpoint().load()
    x = named(X_VAL) if len(model.inputs) == 2 else X_VAL
    kept = spoilt(Y_VAL)[1] > 0 if "sample weights" in kind else np.ones(len(Y_VAL), bool)
    right = model.predict(x, verbose=0).argmax(1) == Y_VAL
    assert reached == pytest.approx(right[kept].mean(), abs=1e-4)


@pytest.mark.parametrize("rank", [0, 1])
@pytest.mark.parametrize("kind", ["tuple of arrays", "tf.data.Dataset", "keras.utils.Sequence"])
def test_each_process_of_a_trial_on_two_slots_has_its_part_of_a_batch(kind: str, rank: int) -> None:
    config = {**CONFIG, "resources": {"slots_per_trial": 2}}
    ranks = Ranks(rank=rank, size=2)
    environment = TrialEnvironment(config, {"global_batch_size": BATCH_SIZE}, trial_seed=3, ranks=ranks)
    call = call_of(trial_of(kind), environment)
    batches = make_feed(call, environment, EpochLengths(call.steps_per_epoch(environment))).arguments(0)["x"]
    x, y = next(iter(batches))
    assert len(x) == len(y) == BATCH_SIZE // 2


def test_a_generator_as_it_is_is_told_how_to_be_wrapped() -> None:
    def rows() -> Iterator[Any]:
        yield X_TRAIN[:8], Y_TRAIN[:8]

    told = r"{} a generator, .*tf\.data\.Dataset\.from_generator\(\).*a tf\.keras\.utils\.Sequence"
    with pytest.raises(InvalidDataError, match=told.format(r"SequenceAdapter\(\) was given")):
        SequenceAdapter(rows())
    for method in ("build_training_data_loader", "build_validation_data_loader"):
        wrong = type("Wrong", (trial_of("tuple of arrays"),), {method: lambda trial: rows()})
        with pytest.raises(InvalidDataError, match=told.format(rf"Wrong\.{method}\(\) returned")):
            det.experimental.create(wrong, CONFIG, local=True)


def test_each_adapter_says_how_its_own_data_are_read() -> None:
    class Trial(trial_of("tuple of arrays")):  # type: ignore[misc]  # made by a function
        def build_training_data_loader(self) -> Any:
            return SequenceAdapter(sequence(self.context, X_TRAIN, Y_TRAIN), workers=0)

        def build_validation_data_loader(self) -> Any:
            return SequenceAdapter(sequence(self.context, X_VAL, Y_VAL), workers=2, max_queue_size=4)

    class Plain(Trial):
        def build_training_data_loader(self) -> Any:
            return sequence(self.context, X_TRAIN, Y_TRAIN)

    class Validating(Trial):
        def build_training_data_loader(self) -> Any:
            return X_TRAIN, Y_TRAIN

    environment = TrialEnvironment(CONFIG, {"global_batch_size": BATCH_SIZE}, trial_seed=3)
    for kind, workers in ((Trial, 0), (Plain, 1), (Validating, 1)):
        call = call_of(kind, environment)
        assert call.arguments["workers"] == workers
        assert call.validation_queue == {"workers": 2, "max_queue_size": 4, "use_multiprocessing": False}
