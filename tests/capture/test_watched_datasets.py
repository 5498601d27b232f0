"""A look at datasets of TensorFlow: to go through one is a change only where it keeps something."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from det_native.capture.watch import Effects, Watch

pytestmark = pytest.mark.slow
START = "tf.data.Dataset.from_tensor_slices(np.arange(8, dtype='float32'))"
DRAWS = "a + tf.random.normal(())"
OF_PYTHON = "tf.data.Dataset.from_generator(numbers, output_types=tf.float32)"
GOES_THROUGH = "for one in ds.take(2): pass"


@pytest.fixture(scope="module")
def tensorflow() -> Any:
    """Return TensorFlow, loaded once."""
    return pytest.importorskip("tensorflow")


@pytest.fixture
def names(tensorflow: Any) -> dict[str, Any]:
    """Return what the cells of a notebook have."""
    items = [1.0, 2.0, 3.0]

    def numbers() -> Any:
        while items:
            yield items.pop()

    table = tensorflow.lookup.experimental.MutableHashTable(tensorflow.string, tensorflow.int64, -1)
    return {"tf": tensorflow, "np": np, "numbers": numbers, "scale": tensorflow.Variable(1.0), "table": table}


def made(names: dict[str, Any], text: str) -> Effects:
    """Make a dataset as a cell does, and return what is seen of another cell that goes through it."""
    exec(f"ds = {text}", names)  # noqa: S102 (the test's own code)
    return seen(names, GOES_THROUGH)


def seen(names: dict[str, Any], source: str) -> Effects:
    """Return what is seen of a cell."""
    watch = Watch()
    watch.begin(names, (), source)
    exec(source, names)  # noqa: S102 (the test's own code)
    return watch.end(names, (), source)


@pytest.mark.parametrize(
    "text",
    [
        f"{START}.batch(2).prefetch(1)",
        f"{START}.map(lambda a: a * 2, num_parallel_calls=2).repeat(2)",
        f"{START}.filter(lambda a: a > 1).take(3)",
        f"tf.data.Dataset.zip(({START}, {START}.skip(1)))",
        f"{START}.interleave(lambda a: tf.data.Dataset.from_tensors(a))",
        f"{START}.map(lambda a: a + tf.random.stateless_normal((), (1, 2)))",
        "tf.data.Dataset.range(9).window(3)",
        "tf.data.TFRecordDataset([])",
    ],
)
def test_what_keeps_nothing_is_not_changed_by_going_through_it(names: dict[str, Any], text: str) -> None:
    effects = made(names, text)
    assert "ds" not in effects.unclear | effects.changed


@pytest.mark.parametrize(
    "text",
    [
        f"{START}.shuffle(4, seed=1)",
        f"{START}.cache()",
        f"{START}.map(lambda a: {DRAWS})",
        f"{START}.map(lambda a: tf.cond(a > 1, lambda: {DRAWS}, lambda: a))",
        f"{START}.map(lambda a: scale.assign_add(a))",
        f"{START}.map(lambda a: a * scale)",
        f"{START}.map(lambda a: tf.numpy_function(lambda b: b, [a], tf.float32))",
        f"{START}.map(lambda a: (table.insert([tf.strings.as_string(a)], [1]), a)[1])",
        f"{START}.interleave(lambda a: tf.data.Dataset.from_tensors(a).shuffle(3))",
        OF_PYTHON,
        f"{OF_PYTHON}.batch(2).map(lambda a: a + 1)",
        "tf.data.Dataset.from_tensor_slices(np.zeros((2000, 1000), 'float32'))",  # not looked into, as it is large
    ],
)
def test_what_keeps_something_is_unclear(names: dict[str, Any], text: str) -> None:
    assert "ds" in made(names, text).unclear


def test_what_is_set_on_a_dataset_is_seen(names: dict[str, Any]) -> None:
    made(names, START)
    assert "ds" in seen(names, "ds.class_names = ['a', 'b']").changed
    assert "ds" in seen(names, "ds.class_names.reverse()").changed
    assert "ds" not in seen(names, "ds.class_names[0]").changed


def test_what_was_found_is_forgotten_with_the_dataset(names: dict[str, Any]) -> None:
    import gc

    from det_native.heap.kinds import tensorflow_datasets as datasets

    gc.collect()
    before = len(datasets._known)
    made(names, START)
    assert len(datasets._known) == before + 1
    names.clear()
    gc.collect()
    assert len(datasets._known) <= before
