"""A training of another model stays behind: it shares libraries and seeds with the call, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from kernels import Kernel

pytestmark = pytest.mark.slow

Replayed = Callable[..., dict[str, Any]]

SOAK = pytest.mark.soak
DATA = "import numpy as np\nx, y = np.ones((8, 4)), np.zeros(8)"


@pytest.mark.parametrize(
    ("imports", "made"),
    [
        ("from tensorflow import keras\nfrom tensorflow.keras import layers", "layers.Dense"),
        pytest.param("from tensorflow import keras\nfrom tensorflow.keras.layers import Dense", "Dense", marks=SOAK),
        pytest.param("from tensorflow import keras", "keras.layers.Dense", marks=SOAK),
    ],
)
def test_models_of_the_same_layers(kernel: Kernel, imports: str, made: str) -> None:
    kernel.cells(
        imports,
        DATA,
        f"first = keras.Sequential([{made}(3), {made}(1)])\nfirst.compile('sgd', 'mse')",
        "first.fit(x, y, verbose=0)",
        f"second = keras.Sequential([{made}(3), {made}(1)])\nsecond.compile('sgd', 'mse')",
        "fit(second, x, y)",
    )
    assert kernel.found().needs_none_of(4, 5)


@pytest.mark.parametrize(("shuffled", "stays"), [("", True), (".shuffle(4, seed=1)", False)])
def test_a_training_with_the_same_dataset(kernel: Kernel, shuffled: str, stays: bool) -> None:
    kernel.cells(
        "import tensorflow as tf\nfrom tensorflow import keras",
        DATA,
        f"ds = tf.data.Dataset.from_tensor_slices((x, y)){shuffled}.batch(4)",
        "first = keras.Sequential([keras.layers.Dense(1)])\nfirst.compile('sgd', 'mse')",
        "first.fit(ds, verbose=0)",
        "for batch in ds.take(1): print(batch[0].shape)",
        "second = keras.Sequential([keras.layers.Dense(1)])\nsecond.compile('sgd', 'mse')",
        "fit(second, ds)",
    )
    assert kernel.found().needs_none_of(5, 6, 7) == stays


def test_a_base_that_was_trained_comes_along(kernel: Kernel, replayed: Replayed) -> None:
    kernel.cells(
        "from tensorflow import keras\nfrom tensorflow.keras import layers",
        DATA,
        "base = layers.Dense(3)\nfirst = keras.Sequential([base, layers.Dense(1)])\nfirst.compile('sgd', 'mse')",
        "first.fit(x, y, verbose=0)",
        "second = keras.Sequential([base, layers.Dense(2)])\nsecond.compile('sgd', 'mse')",
        "fit(second, x, y)",
    )
    found = kernel.found()
    assert found.needs_none_of(5)
    shown = ("[one.tolist() for one in base.get_weights()]", "base is second.layers[0]")
    assert replayed(found, *shown) == kernel.live(*shown)


@pytest.mark.parametrize(
    "seed",
    [
        "tf.keras.utils.set_random_seed({})",
        *(pytest.param(f"{name}.seed({{}})", marks=SOAK) for name in ("np.random", "random")),
        pytest.param("tf.random.set_seed({})", marks=SOAK),
    ],
)
def test_seeds_of_other_trainings(kernel: Kernel, replayed: Replayed, seed: str) -> None:
    others = [
        f"{seed.format(number)}\nother = tf.keras.Sequential([tf.keras.layers.Dense(1)])\n"
        "other.compile('sgd', 'mse')\nother.fit(x, y, verbose=0)"
        for number in range(3)
    ]
    kernel.cells(
        "import random\nimport tensorflow as tf",
        DATA,
        *others,
        f"{seed.format(99)}\nnoise = np.random.rand(2), random.random()",
        "model = tf.keras.Sequential([tf.keras.layers.Input((4,)), tf.keras.layers.Dense(1)])\nmodel.compile('sgd')",
        "fit(model, x, y, noise)",
    )
    found = kernel.found()
    assert found.program is not None
    assert found.needs_none_of(4, 5, 6), [(cell.number, cell.reason) for cell in found.program.cells]
    shown = ("noise", "model.get_weights()")
    assert replayed(found, *shown) == kernel.live(*shown)


def test_a_seed_that_nobody_noted_comes_along(kernel: Kernel) -> None:
    """Of cells that ran before det_native was imported no states are known."""
    kernel.begin(kernel.folder, imported=False)
    kernel.cells("import numpy", "pass", "numpy.random.seed(3)", "noise = numpy.random.rand(2)", "import det_native")
    kernel.cells("from det_stand_in import fit", "fit(noise)")
    found = kernel.found()
    assert any("seed(3)" in found.source_of(number) for number in found.cells if number is not None)
