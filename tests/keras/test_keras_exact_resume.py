"""Stopped after any batch and continued, a trial of tf.keras ends bit-equal to one that was never stopped, on CPU."""

from __future__ import annotations

import functools
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from det_harness.frameworks.base import harness_for
from det_harness.frameworks.keras.dataset_feed import DatasetFeed
from det_harness.trial import rng
from det_harness.trial.checkpoint import CheckpointOwner, TrialCheckpoints
from det_harness.trial.lengths import periods_of
from det_harness.trial.schedule import Schedule
from det_harness.trial.services import Services
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st
from rows_reporter import RowsReporter
from tries import draw

from det_native.keras import SequenceAdapter, TFKerasTrial
from det_native.keras.generations import NUMBER
from det_native.keras.pipelines import batch_size_of_step, inputs_of, is_repeat, reads_from_python, steps_up
from det_native.schema.environment import TrialEnvironment
from det_native.storage.checkpoints import CheckpointStorage

pytestmark = pytest.mark.slow

SEED, RECORDS, BATCH_SIZE, BATCHES = 7, 44, 8, 16
STEPS = 6  # of an epoch: the last batch has four records
X = np.random.default_rng(1).normal(size=(RECORDS, 6)).astype("float32")
Y = X[:, :3].argmax(1)
WEIGHTS = np.linspace(0.1, 1.0, RECORDS)


class Rows(tf.keras.utils.Sequence):
    """Batches with noise; it counts the epochs into the noise."""

    def __init__(self) -> None:
        self.epoch = 0

    def __len__(self) -> int:
        return STEPS

    def __getitem__(self, number: int) -> Any:
        rows = slice(BATCH_SIZE * number, BATCH_SIZE * number + BATCH_SIZE)
        noise = np.random.normal(scale=0.1, size=X[rows].shape)
        return X[rows] + noise + 0.01 * self.epoch, Y[rows]

    def on_epoch_end(self) -> None:
        self.epoch += 1


def rows_dataset() -> tf.data.Dataset:
    return tf.data.Dataset.from_tensor_slices((X, Y))


def shuffled(context: Any) -> Any:
    rows = context.wrap_dataset(rows_dataset()).shuffle(RECORDS)
    return rows.map(lambda x, y: (x * 2.0, y), tf.data.AUTOTUNE).batch(BATCH_SIZE).prefetch(2)


def interleaved(context: Any) -> Any:
    parts = context.wrap_dataset(tf.data.Dataset.range(4)).shuffle(4)
    rows = parts.interleave(
        lambda part: tf.data.Dataset.from_tensor_slices((X, Y)).shard(4, part), cycle_length=2, num_parallel_calls=2
    )
    return rows.cache().shuffle(9).batch(BATCH_SIZE)


def endless(context: Any) -> Any:
    return context.wrap_dataset(rows_dataset()).shuffle(11).batch(BATCH_SIZE).repeat()


def drawing(context: Any) -> Any:
    """Its position cannot be saved: TensorFlow refuses operations with a state of their own."""
    rows = context.wrap_dataset(rows_dataset()).shuffle(RECORDS, seed=3)
    return rows.map(lambda x, y: (x + tf.random.normal((6,), seed=5), y)).batch(BATCH_SIZE)


def cached(context: Any) -> Any:
    make = context.experimental.cache_train_dataset("rows", "v1", shuffle=True)(rows_dataset)
    return make().map(lambda x, y: (x + 1.0, y)).batch(BATCH_SIZE)


KINDS: dict[str, Callable[[Any], Any]] = {
    "arrays": lambda context: (X, Y),
    "dictionary and weights": lambda context: ({"a": X[:, :2], "b": X[:, 2:]}, Y, WEIGHTS),
    "sequence": lambda context: Rows(),
    "adapter": lambda context: SequenceAdapter(Rows(), workers=0),
    "dataset": shuffled,
    "interleaved and cached in memory": interleaved,
    "endless": endless,
    "cannot be saved": drawing,
    "cached on disk": cached,
}


def layers() -> Any:
    return [
        tf.keras.layers.Dense(5, "relu"),
        tf.keras.layers.BatchNormalization(),
        tf.keras.layers.Dropout(0.3),
        tf.keras.layers.Dense(3),
    ]


OPTIMIZERS: dict[str, Callable[[], Any]] = {
    "adam": lambda: tf.keras.optimizers.Adam(0.01),
    "momentum": lambda: tf.keras.optimizers.SGD(tf.keras.optimizers.schedules.ExponentialDecay(0.1, 5, 0.9), 0.9),
}
if NUMBER == 2:
    OPTIMIZERS |= {
        "legacy adam": lambda: tf.keras.optimizers.legacy.Adam(0.01),
        "legacy momentum": lambda: tf.keras.optimizers.legacy.SGD(0.05, momentum=0.9),
    }


def trial(kind: str, optimizer: str) -> type[TFKerasTrial]:
    named = kind.startswith("dictionary")

    class Trial(TFKerasTrial):
        def build_model(self) -> Any:
            inputs = {name: tf.keras.Input((size,), name=name) for name, size in (("a", 2), ("b", 4))}
            output: Any = tf.keras.layers.Concatenate()(list(inputs.values())) if named else tf.keras.Input((6,))
            first = output
            for layer in layers():
                output = layer(output)
            model = self.context.wrap_model(tf.keras.Model(inputs if named else first, output))
            loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
            metrics = ["accuracy", tf.keras.metrics.SparseTopKCategoricalAccuracy(2, name="top")]
            model.compile(OPTIMIZERS[optimizer](), loss, metrics=metrics, weighted_metrics=[])
            return model

        def build_training_data_loader(self) -> Any:
            return KINDS[kind](self.context)

        def build_validation_data_loader(self) -> Any:
            return ({"a": X[:, :2], "b": X[:, 2:]} if named else X), Y

    return Trial


class Training:
    """The runs of one trial, from checkpoint to checkpoint."""

    def __init__(self, directory: Path, kind: str, optimizer: str = "adam", every: int = 5) -> None:
        self._directory = directory
        self._trial = trial(kind, optimizer)
        config = {
            "searcher": {"name": "single", "metric": "val_loss", "max_length": {"batches": BATCHES}},
            "records_per_epoch": RECORDS,
            "min_validation_period": {"batches": every},
            "checkpoint_policy": "none",
        }
        self._environment = TrialEnvironment(config, {"global_batch_size": BATCH_SIZE}, trial_seed=SEED)
        self.reporter = RowsReporter("val_loss")
        self.model: Any = None

    def run(self, stop: int | None = None) -> int:
        """Go on from the last checkpoint; return the batches done in the end."""
        tf.keras.backend.clear_session()
        resume = self.reporter.checkpoints[-1][1] if self.reporter.checkpoints else None
        owner = CheckpointOwner("keras", self._environment.hparams)
        storage = CheckpointStorage(str(self._directory))
        checkpoints = TrialCheckpoints(storage, owner, self.reporter, resume=resume)
        schedule = Schedule(periods_of(self._environment))

        def asked() -> bool:
            return stop is not None and controller._callbacks.done >= stop

        services = Services(self._environment, schedule, self.reporter, checkpoints, asked)
        with rng.preserved():
            rng.seed_process(SEED)
            controller: Any = harness_for(self._trial).controller(self._trial, services)
            rng.seed_all(SEED if resume is None else SEED + 1)
            outcome = controller.run()
        checkpoints.wait()
        self.model = controller.call.model
        return outcome.batches

    def state(self) -> list[Any]:
        """Return weights, the optimizer's variables, and all that was reported."""
        optimizer = self.model.optimizer
        slots = optimizer.variables() if callable(optimizer.variables) else optimizer.variables
        values = [*self.model.get_weights(), *(slot.numpy() for slot in slots)]
        # What a batch contributed can be told where its size is known, which depends on the moment of the report.
        rows = [
            (row.batch, {name: value for name, value in row.metrics.items() if not name.startswith("batch_")})
            for row in self.reporter.training_rows
        ]
        return [*(value.tolist() for value in values), rows, self.reporter.validation_rows]


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., list[Any]]:
    """Return a function that trains to the end: once for each case."""

    @functools.cache
    def run(kind: str, optimizer: str, every: int) -> list[Any]:
        whole = Training(tmp_path_factory.mktemp("whole"), kind, optimizer, every)
        assert whole.run() == BATCHES
        return whole.state()

    return run


def check(uninterrupted: Any, directory: Path, kind: str, optimizer: str, every: int, stops: list[int]) -> None:
    parts = Training(directory, kind, optimizer, every)
    for stop in stops:
        assert parts.run(stop) == stop
    assert parts.run() == BATCHES
    whole = uninterrupted(kind, optimizer, every)
    for mine, expected in zip(parts.state(), whole, strict=True):
        assert mine == expected


# In an epoch, before its last batch, at its end; in a later one.
STOPS = dict(zip(KINDS, ([3], [6, 14], [9], [12], [5], [4, 11], [6], [8], [6]), strict=True))
LONG = {"sequence", "cached on disk"}
LONGER = KINDS.keys() - {"arrays", "dataset", *LONG}


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param(kind, marks=[pytest.mark.soak] * (kind in LONGER) + [pytest.mark.long] * (kind in LONG))
        for kind in KINDS
    ],
)
def test_each_kind_of_data_goes_on_exactly(kind: str, uninterrupted: Any, tmp_path: Path) -> None:
    optimizer = list(OPTIMIZERS)[list(KINDS).index(kind) % len(OPTIMIZERS)]
    check(uninterrupted, tmp_path, kind, optimizer, 5, STOPS[kind])


def stopped_anywhere(case: Any, uninterrupted: Any) -> None:
    kind, optimizer, every, stops = case
    event(f"{kind}, {optimizer}")
    with tempfile.TemporaryDirectory() as directory:
        check(uninterrupted, Path(directory), kind, optimizer, every, sorted(stops))


CASES = st.tuples(
    st.sampled_from(sorted(KINDS)),
    st.sampled_from(sorted(OPTIMIZERS)),
    st.sampled_from([3, 5, BATCHES]),
    st.sets(st.integers(1, BATCHES - 1), min_size=1, max_size=3),
)
MANY = {"suppress_health_check": list(HealthCheck), "deadline": None}


@pytest.mark.soak
@settings(max_examples=6, derandomize=True, database=None, **MANY)
@given(case=CASES)
def test_stopping_anywhere_changes_nothing(case: Any, uninterrupted: Any) -> None:
    stopped_anywhere(case, uninterrupted)


@pytest.mark.soak
def test_stopping_anywhere_changes_nothing_at_length(uninterrupted: Any) -> None:
    check_case = functools.partial(stopped_anywhere, uninterrupted=uninterrupted)
    most = int(os.environ.get("DET_SOAK_STOPS", "300"))
    draw("trainings in Keras stopped at drawn batches", most, check_case, case=CASES)


class TestDatasetFeed:
    """From which batch a Dataset goes on."""

    pipelines: dict[str, Callable[[tf.data.Dataset], tf.data.Dataset]] = {
        "plain": lambda numbers: numbers.batch(4),
        "shuffled": lambda numbers: numbers.shuffle(23, 3).batch(4),
        "read ahead": lambda numbers: numbers.shuffle(23, 3).batch(4).prefetch(2),
        "read ahead far": lambda numbers: numbers.shuffle(23, 3).batch(4).prefetch(9),
        "repeated twice": lambda numbers: numbers.take(10).shuffle(10, 3).repeat(2).batch(4).prefetch(2),
        "one after another": lambda numbers: (
            numbers.take(11).shuffle(9, 1).concatenate(numbers.skip(11).shuffle(9, 2)).batch(4).prefetch(1)
        ),
        "of unknown length": lambda numbers: numbers.shuffle(9, 3).filter(lambda number: number % 3 > 0).batch(4),
        "endless": lambda numbers: numbers.shuffle(9, 3).batch(4).prefetch(2).repeat(),
        "shuffled within functions": lambda numbers: (
            numbers.batch(6).flat_map(lambda part: tf.data.Dataset.from_tensor_slices(part).shuffle(6, 2)).batch(4)
        ),
        "of Python": lambda numbers: (
            tf.data.Dataset.from_generator(lambda: iter(range(23)), output_signature=tf.TensorSpec([], tf.int64))
            .shuffle(9, 3)
            .batch(4)
        ),
    }

    @pytest.mark.long
    @pytest.mark.parametrize("name", pipelines)
    def test_any_batch_is_reached_again(self, name: str, tmp_path: Path) -> None:
        def feed() -> DatasetFeed:
            return DatasetFeed(self.pipelines[name](tf.data.Dataset.range(23)))

        def take(iterator: Any) -> list[int]:
            found: list[int] = next(iterator).numpy().tolist()
            return found

        step = feed().attach(take, 0, None)
        expected = [step(None) for _ in range(20)]
        whole = feed()
        step = whole.attach(take, 0, None)
        for batch in range(1, 14):
            step(None)
            folder = tmp_path / str(batch)
            folder.mkdir()
            whole.save(folder, batch)
        for batch in (1, 4, 5, 6, 11, 13):
            resumed = feed()
            step = resumed.attach(take, batch, tmp_path / str(batch))
            assert [step(None) for _ in range(batch, 20)] == expected[batch:], batch

    def test_a_position_that_cannot_be_saved_is_told_once(
        self, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        feed = DatasetFeed(self.pipelines["of Python"](tf.data.Dataset.range(23)))
        step = feed.attach(next, 0, None)
        for _ in range(2):
            step(None)
            feed.save(tmp_path, 0)
        assert caplog.text.count("cannot be saved (it reads from a Python generator)") == 1


class TestPrivateAttributes:
    """Of tf.data: each is what ``pipelines.py`` takes it for."""

    def test_dataset_inputs(self) -> None:
        numbers = tf.data.Dataset.range(3)
        assert inputs_of(tf.data.Dataset.zip((numbers, numbers))) == [numbers, numbers]
        batches = numbers.batch(2)
        assert list(steps_up(batches.prefetch(1)))[1:] == [batches, numbers]

    def test_batch_dataset_batch_size(self) -> None:
        numbers = tf.data.Dataset.range(3)
        assert [batch_size_of_step(each) for each in (numbers, numbers.batch(2), numbers.batch(2, True))] == [
            None,
            2,
            2,
        ]

    def test_repeat_op_repeat_dataset(self) -> None:
        numbers = tf.data.Dataset.range(3)
        assert [is_repeat(each) for each in (numbers, numbers.repeat(), numbers.repeat(2), numbers.batch(2))] == [
            *(False, True, True, False)
        ]

    def test_dataset_functions(self) -> None:
        signature = tf.TensorSpec([], tf.int64)
        generated = tf.data.Dataset.from_generator(lambda: iter([1]), output_signature=signature)
        assert reads_from_python(generated.map(lambda number: number + 1).batch(2))
        assert not reads_from_python(tf.data.Dataset.range(3).map(lambda number: number + 1))
