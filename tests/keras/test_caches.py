"""Cached datasets: written once, found whole or not at all, read in the order asked for, and from any record."""

from __future__ import annotations

import json
import logging
import shutil
import signal
import subprocess
import sys
import threading
from collections import OrderedDict, namedtuple
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from det_harness.frameworks.keras.dataset_feed import DatasetFeed

import det_native as det
from det_native.errors import (
    ArgumentError,
    InvalidDataError,
    StorageError,
    TrialDefinitionError,
    UnsupportedFeatureError,
)
from det_native.keras import TFKerasTrial, TFKerasTrialContext
from det_native.keras.caches.order import Order, numbers_in_order
from det_native.keras.caches.reading import damage_behind, read, records_of
from det_native.keras.caches.store import CacheFolder, Records
from det_native.schema.environment import Ranks, TrialEnvironment
from det_native.schema.home import Home

pytestmark = pytest.mark.slow

COUNT = 23
Point = namedtuple("Point", "x y")


def numbers(count: int = COUNT) -> tf.data.Dataset:
    return tf.data.Dataset.range(count)


def write(root: Path, make: Callable[[], Any] = numbers) -> Records:
    return CacheFolder(root, "numbers", "v1", "train").get(make, lambda _: False)


def values(dataset: Any) -> list[int]:
    return [int(value) for value in dataset]


def context(seed: int = 3, managed: bool = True, config: dict[str, Any] | None = None, **ranks: int) -> Any:
    environment = TrialEnvironment(config or {}, {}, trial_seed=seed, managed=managed, ranks=Ranks(**ranks))
    return TFKerasTrialContext(environment)


class Maker:
    """Counts how often its Dataset is made."""

    def __init__(self, count: int = COUNT) -> None:
        self.count = count
        self.calls = 0

    def __call__(self) -> tf.data.Dataset:
        self.calls += 1
        return numbers(self.count)


STRUCTURES: dict[str, Callable[[], Any]] = {
    "one tensor": numbers,
    "tuple": lambda: tf.data.Dataset.from_tensor_slices((np.eye(3, 5, dtype="float16"), np.array([True, False, True]))),
    "dictionary": lambda: tf.data.Dataset.from_tensor_slices(
        ({"b": np.arange(3), "a": np.array(["one", "", "drei ß"])}, np.arange(3.0), np.ones(3, "uint8"))
    ),
    "ordered": lambda: tf.data.Dataset.from_tensor_slices(OrderedDict(b=np.arange(3), a=np.arange(6).reshape(3, 2))),
    "unknown length": lambda: numbers(4).map(lambda number: (tf.range(number), tf.cast(number, tf.bfloat16))),
}


@pytest.mark.parametrize("name", STRUCTURES)
def test_records_come_back_as_they_were(name: str, tmp_path: Path) -> None:
    expected = STRUCTURES[name]()
    found = read(write(tmp_path, STRUCTURES[name]), Order.AS_WRITTEN, 0)
    assert [spec.dtype for spec in tf.nest.flatten(found.element_spec)] == [
        spec.dtype for spec in tf.nest.flatten(expected.element_spec)
    ]
    for one, other in zip(found, expected, strict=True):
        tf.nest.assert_same_structure(one, dict(other) if isinstance(other, dict) else other)
        for mine, theirs in zip(tf.nest.flatten(one), tf.nest.flatten(other), strict=True):
            assert np.array_equal(mine.numpy(), theirs.numpy())


UNWRITABLE: dict[str, tuple[Callable[[], Any], str]] = {
    "ragged": (
        lambda: tf.data.Dataset.from_tensor_slices(tf.ragged.constant([[1], [2, 3]])),
        r"elements with a RaggedTensor: .* to_tensor\(\)",
    ),
    "sparse": (
        lambda: tf.data.Dataset.from_tensor_slices(tf.sparse.from_dense(np.eye(3))),
        r"elements with a SparseTensor: .* tf\.sparse\.to_dense",
    ),
    "named tuple": (lambda: numbers().map(lambda number: Point(number, number)), "elements with a Point"),
    "datasets": (lambda: numbers().window(2), "elements with a Dataset"),
    "endless": (lambda: numbers().repeat(), r"without end.*Leave dataset\.repeat\(\) out"),
    "nothing in it": (lambda: numbers(0), "a Dataset of no records"),
    "no Dataset": (lambda: [1, 2], "returned list; return a tf.data.Dataset"),
}


@pytest.mark.parametrize("name", UNWRITABLE)
def test_what_cannot_be_written_is_told_and_leaves_nothing(name: str, tmp_path: Path) -> None:
    make, told = UNWRITABLE[name]
    with pytest.raises(InvalidDataError, match=rf"cached dataset 'numbers', version 'v1' \(train\).*{told}"):
        write(tmp_path, make)
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] in ([], ["lock"])
    assert len(write(tmp_path)) == COUNT


def test_a_dataset_is_written_once_for_each_version() -> None:
    maker = Maker()
    for version, calls in (("v1", 1), ("v1", 1), ("v2", 2), ("v1", 2), ("../v1", 3), ("v1/..", 4), ("../v1", 4)):
        decorate = context().experimental.cache_train_dataset("numbers", version)
        assert values(decorate(maker)()) == list(range(COUNT))
        assert maker.calls == calls
    validation = context().experimental.cache_validation_dataset("numbers", "v1")
    assert values(validation(Maker(5))()) == list(range(5))
    assert all(Home.default().datasets in path.parents for path in Home.default().path.rglob("records.tfrecord"))


def test_the_configuration_says_where(tmp_path: Path) -> None:
    both = {"host_storage_path": str(tmp_path / "0"), "container_storage_path": "/nowhere"}
    for number, layer in enumerate((both, {"type": "shared_fs", "container_storage_path": str(tmp_path / "1")})):
        context(config={"data_layer": layer}).experimental.cache_train_dataset("numbers", "v1")(numbers)()
        assert list((tmp_path / str(number)).rglob("records.tfrecord"))
    bucket = {"data_layer": {"type": "s3", "bucket": "b", "bucket_directory_path": "p"}}
    with pytest.raises(UnsupportedFeatureError, match=r"data_layer\.type: s3 .* host_storage_path"):
        context(config=bucket).experimental.cache_train_dataset("numbers", "v1")(numbers)()
    (tmp_path / "file").touch()
    file = {"data_layer": {"host_storage_path": str(tmp_path / "file")}}
    with pytest.raises(StorageError, match=r"cannot be made .* data_layer\.host_storage_path"):
        context(config=file).experimental.cache_train_dataset("numbers", "v1")(numbers)()


class TestOrder:
    """Which record comes when."""

    def test_every_epoch_has_another_order_of_all_records(self) -> None:
        count = 1000
        orders = values(numbers_in_order(count, Order.SHUFFLED_EACH_EPOCH, 3).repeat(3))
        epochs = [orders[start : start + count] for start in range(0, 3 * count, count)]
        for epoch in epochs:
            assert sorted(epoch) == list(range(count))
            # Not within a window: the records of each tenth go to all tenths.
            places = np.argsort(epoch)
            assert all(set(places[start : start + 100] // 100) == set(range(10)) for start in range(0, count, 100))
        assert all(sum(map(int.__eq__, epochs[one], epochs[other])) < 10 for one, other in ((0, 1), (0, 2), (1, 2)))

    def test_the_seed_makes_the_order(self) -> None:
        for order in (Order.SHUFFLED_ONCE, Order.SHUFFLED_EACH_EPOCH):
            first = values(numbers_in_order(COUNT, order, 3).repeat(2))
            tf.random.set_seed(99)
            assert values(numbers_in_order(COUNT, order, 3).repeat(2)) == first
            assert values(numbers_in_order(COUNT, order, 4).repeat(2)) != first
            assert (first[:COUNT] == first[COUNT:]) == (order is Order.SHUFFLED_ONCE)
        assert values(numbers_in_order(COUNT, Order.SHUFFLED_EACH_EPOCH, 0)) != list(range(COUNT))

    @pytest.mark.parametrize("order", Order)
    @pytest.mark.parametrize("count", [2, COUNT])
    def test_processes_share_the_records_of_each_epoch(self, order: Order, count: int) -> None:
        whole = values(numbers_in_order(count, order, 3).repeat(2))
        shares = [values(numbers_in_order(count, order, 3, rank, 3).repeat(2)) for rank in range(3)]
        for rank, share in enumerate(shares):
            assert share == [*whole[:count][rank::3], *whole[count:][rank::3]]


@pytest.mark.long
def test_the_decorators_choose_the_order() -> None:
    def epochs(decorate: Any) -> tuple[list[int], list[int]]:
        found = values(decorate(numbers)().repeat(2))
        return found[:COUNT], found[COUNT:]

    first, second = epochs(context().experimental.cache_train_dataset("numbers", "v1", shuffle=True))
    assert sorted(first) == sorted(second) == list(range(COUNT))
    assert first != second
    kept, again = epochs(context().experimental.cache_train_dataset("numbers", "v1", True, True))
    assert kept == again != list(range(COUNT))
    validated, once_more = epochs(context().experimental.cache_validation_dataset("numbers", "v1", shuffle=True))
    assert validated == once_more != list(range(COUNT))
    with pytest.warns(UserWarning, match="no effect without shuffle=True"):
        context().experimental.cache_train_dataset("numbers", "v1", skip_shuffle_at_epoch_end=True)


@pytest.mark.long
def test_each_process_of_a_trial_gets_its_share() -> None:
    shares = [
        values(context(rank=rank, size=2).experimental.cache_train_dataset("numbers", "v1", True)(numbers)())
        for rank in range(2)
    ]
    assert [len(share) for share in shares] == [12, 11]
    assert sorted(shares[0] + shares[1]) == list(range(COUNT))
    everything = context(managed=False, rank=1, size=2).experimental.cache_train_dataset("numbers", "v1")(numbers)()
    assert values(everything) == list(range(COUNT))


@pytest.mark.long
@pytest.mark.parametrize("order", Order)
def test_reading_goes_on_at_the_very_record(order: Order, tmp_path: Path) -> None:
    records = write(tmp_path)

    def feed() -> DatasetFeed:
        augmented = read(records, order, 3).map(lambda number: number * 2, tf.data.AUTOTUNE)
        return DatasetFeed(augmented.batch(4).prefetch(2))

    def take(iterator: Any) -> list[int]:
        found: list[int] = next(iterator).numpy().tolist()
        return found

    step = feed().attach(take, 0, None)
    expected = [step(None) for _ in range(20)]
    assert [len(batch) for batch in expected[:7]] == [4, 4, 4, 4, 4, 3, 4]
    for stop in (2, 6, 11):
        stopped = feed()
        step = stopped.attach(take, 0, None)
        for _ in range(stop):
            step(None)
        (tmp_path / str(stop)).mkdir()
        stopped.save(tmp_path / str(stop), stop)
        step = feed().attach(take, stop, tmp_path / str(stop))
        assert [step(None) for _ in range(stop, 20)] == expected[stop:]


class Waiting(logging.Handler):
    """Sets an event once somebody says that it waits for another process."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.event = threading.Event()

    def emit(self, record: logging.LogRecord) -> None:
        if "waiting for it" in record.getMessage():
            self.event.set()


def test_two_that_ask_at_once_write_it_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    waiting, maker, found = Waiting(), Maker(), []
    logger = logging.getLogger("det_native")
    caplog.set_level(logging.INFO, "det_native")
    logger.addHandler(waiting)
    other = threading.Thread(target=lambda: found.append(write(tmp_path, maker)))

    def make() -> Any:
        other.start()
        assert waiting.event.wait(60)
        return maker()

    try:
        mine = write(tmp_path, make)
    finally:
        logger.removeHandler(waiting)
    other.join(60)
    assert maker.calls == 1
    assert found[0].folder == mine.folder


KILLED = """
import os, signal, sys
from pathlib import Path
import tensorflow as tf
from det_native.keras.caches.store import CacheFolder

def records():
    yield from range(5)
    os.kill(os.getpid(), signal.SIGKILL)

make = lambda: tf.data.Dataset.from_generator(records, output_signature=tf.TensorSpec([], tf.int64))
CacheFolder(Path(sys.argv[1]), "numbers", "v1", "train").get(make, lambda _: False)
"""


def test_what_a_killed_process_leaves_is_neither_used_nor_in_the_way(tmp_path: Path) -> None:
    killed = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path)], check=False, timeout=120)
    assert killed.returncode == -signal.SIGKILL
    (left,) = tmp_path.rglob("records.tfrecord")
    records = write(tmp_path)
    assert values(read(records, Order.AS_WRITTEN, 0)) == list(range(COUNT))
    assert list(tmp_path.rglob("records.tfrecord")) == [records.path] != [left]


def test_an_error_in_the_midst_of_writing_leaves_nothing(tmp_path: Path) -> None:
    def failing() -> Any:
        def records() -> Iterator[int]:
            yield 1
            raise ZeroDivisionError("record 2")

        return tf.data.Dataset.from_generator(records, output_signature=tf.TensorSpec([], tf.int64))

    with pytest.raises(tf.errors.OpError, match="record 2"):
        write(tmp_path, failing)
    assert not list(tmp_path.rglob("records.tfrecord"))


def cut(records: Records) -> None:
    with records.path.open("r+b") as file:
        file.truncate(records.size - 10)


def forget_offsets(records: Records) -> None:
    np.save(records.folder / "offsets.npy", records.offsets[::-1])


def remove(records: Records) -> None:
    records.path.unlink()


def garble(records: Records) -> None:
    (records.folder.parent / "current.json").write_text("{")


def another_format(records: Records) -> None:
    current = records.folder.parent / "current.json"
    current.write_text(json.dumps({**json.loads(current.read_text()), "format": 99}))


@pytest.mark.parametrize("damage", [cut, forget_offsets, remove, garble, another_format])
def test_a_damaged_cache_is_written_again(
    damage: Callable[[Records], None], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    maker = Maker()
    damage(write(tmp_path, maker))
    assert values(read(write(tmp_path, maker), Order.AS_WRITTEN, 0)) == list(range(COUNT))
    assert maker.calls == 2
    assert "Writing the cached dataset 'numbers', version 'v1' (train) again: " in caplog.text
    assert len(list(tmp_path.rglob("records.tfrecord"))) == 1


def flip(records: Records, number: int) -> None:
    content = bytearray(records.path.read_bytes())
    content[int(records.offsets[number]) + 14] ^= 1
    records.path.write_bytes(content)


def test_a_damaged_record_is_told_and_written_again(tmp_path: Path) -> None:
    earlier = write(tmp_path / "earlier")
    records = write(tmp_path)
    assert records.problem() is None
    assert damage_behind(ValueError()) is None
    flip(records, 7)
    kept, dataset = (read(each, Order.AS_WRITTEN, 0) for each in (earlier, records))
    shutil.rmtree(earlier.folder)  # what an earlier trial read is no business of this one
    with pytest.raises(tf.errors.DataLossError) as caught:
        values(dataset)
    told = damage_behind(caught.value)
    assert told is not None
    assert "cached dataset 'numbers', version 'v1' (train) is damaged: record 7 in" in str(told)
    assert records_of(kept) is earlier
    maker = Maker()
    assert values(read(write(tmp_path, maker), Order.AS_WRITTEN, 0)) == list(range(COUNT))
    assert maker.calls == 1


class TestUse:
    """What the document warns of."""

    def test_the_decorator_used_twice(self) -> None:
        experimental = context().experimental
        for kind in ("train", "validation"):
            decorate = getattr(experimental, f"cache_{kind}_dataset")
            decorate("numbers", "v1")(numbers)()
            with pytest.raises(TrialDefinitionError, match=rf"cache_{kind}_dataset\(\) is used twice"):
                decorate("others", "v1")(numbers)()

    def test_outside_a_run_it_may_be_used_again(self) -> None:
        decorate = TFKerasTrialContext.from_config(CONFIG).experimental.cache_train_dataset
        assert values(decorate("numbers", "v1")(numbers)()) == values(decorate("numbers", "v1")(numbers)())

    def test_batches_before_caching_are_told_each_time(self) -> None:
        for _ in range(2):
            decorate = context().experimental.cache_train_dataset("batches", "v1")
            with pytest.warns(UserWarning, match="was batched before it was cached"):
                decorate(lambda: numbers().batch(4).prefetch(1))()

    def test_a_cached_dataset_is_shared_among_processes_once(self) -> None:
        one = context(rank=1, size=2)
        inside = one.experimental.cache_train_dataset("numbers", "v1")(lambda: one.wrap_dataset(numbers()))()
        with pytest.warns(UserWarning, match="no effect on a cached dataset"):
            dataset = one.wrap_dataset(inside.map(lambda number: number))
        assert values(dataset) == list(range(1, COUNT, 2))
        assert values(one.wrap_dataset(numbers())) == list(range(1, COUNT, 2))

    @pytest.mark.parametrize(
        ("arguments", "told"),
        [
            ((numbers, "v1"), r'dataset_id must be a text, .*; write @\.\.\.cache_train_dataset\("name", "v1"\)'),
            (("numbers", ""), "dataset_version must be a text, not ''"),
            (("numbers", 1), "dataset_version must be a text, not 1"),
        ],
    )
    def test_wrong_names_are_told(self, arguments: Any, told: str) -> None:
        with pytest.raises(ArgumentError, match=told):
            context().experimental.cache_train_dataset(*arguments)


CONFIG: dict[str, Any] = {
    "hyperparameters": {"global_batch_size": 8},
    "searcher": {"name": "single", "metric": "val_loss", "max_length": {"epochs": 2}},
    "records_per_epoch": 44,
    "min_validation_period": {"epochs": 1},
    "reproducibility": {"experiment_seed": 5},
}
X = np.random.default_rng(1).normal(size=(44, 6)).astype("float32")
Y = X[:, :3].argmax(1)
made: list[str] = []


class Cached(TFKerasTrial):
    """Trains on cached data, in batches made of them."""

    def build_model(self) -> Any:
        model = self.context.wrap_model(tf.keras.Sequential([tf.keras.Input((6,)), tf.keras.layers.Dense(3)]))
        model.compile("adam", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
        return model

    def build_training_data_loader(self) -> Any:
        @self.context.experimental.cache_train_dataset("rows", "v1", shuffle=True)
        def make() -> tf.data.Dataset:
            made.append("train")
            return tf.data.Dataset.from_tensor_slices((X, Y))

        return make().batch(self.context.get_per_slot_batch_size())

    def build_validation_data_loader(self) -> Any:
        @self.context.experimental.cache_validation_dataset("rows", "v1")
        def make() -> tf.data.Dataset:
            made.append("validation")
            return tf.data.Dataset.from_tensor_slices((X, Y))

        return make().batch(8)


class TestTrial:
    """Whole trials."""

    @pytest.mark.long
    @pytest.mark.usefixtures("recorded")
    def test_later_trials_read_what_the_first_has_written(self) -> None:
        shutil.rmtree(Home.default().datasets, ignore_errors=True)
        made.clear()
        histories = []
        for _ in range(2):
            experiment = det.experimental.create(Cached, CONFIG, local=True)
            assert str(experiment.state) == "Completed"
            assert [row["batch"] for row in experiment.trials[0].metrics("training")] == list(range(1, 13))
            histories.append(experiment.history["val_loss"])
        assert made == ["train", "validation"]
        assert histories[0] == histories[1]
        loaded = experiment.top_checkpoint().load()
        assert loaded.evaluate(X, Y, verbose=0)[0] == pytest.approx(min(histories[0]), rel=1e-5)

    @pytest.mark.long
    @pytest.mark.usefixtures("recorded")
    def test_repeating_it_is_told(self) -> None:
        class Repeated(Cached):
            def build_training_data_loader(self) -> Any:
                return super().build_training_data_loader().repeat()

        with pytest.warns(UserWarning, match=r"dataset\.repeat\(\) is called on the cached dataset 'rows'"):
            experiment = det.experimental.create(Repeated, CONFIG, local=True)  # epochs of 44 // 8 batches
        assert len(experiment.trials[0].metrics("training")) == 10

    @pytest.mark.long
    def test_a_record_damaged_on_disk_is_told_by_name(self) -> None:
        class Damaged(Cached):
            def keras_callbacks(self) -> list[Any]:
                (path,) = Home.default().datasets.rglob("train/*/records.tfrecord")
                path.write_bytes(path.read_bytes().replace(X[3].tobytes(), X[4].tobytes()))
                return []

        made.clear()
        with pytest.raises(
            StorageError, match=r"cached dataset 'rows', version 'v1' \(train\) is damaged: record 3 in"
        ):
            det.experimental.create(Damaged, CONFIG, local=True)
        det.experimental.create(Cached, CONFIG, local=True)
        assert made == ["train", "validation", "train"]
