"""A training that TensorFlow's own random numbers decided: what it came to travels, as nobody can repeat it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from kernels import Kernel

pytestmark = pytest.mark.slow

Replayed = Callable[..., dict[str, Any]]

SETUP = "import numpy as np\nfrom tensorflow import keras\nfrom tensorflow.keras import layers"
DATA = "rng = np.random.default_rng(1)\nx, y = rng.normal(size=(64, 4)), rng.normal(size=64)"
MODEL = "model = keras.Sequential([layers.Input((4,)), layers.Dense(3), layers.Dense(1)])"
COMPILE = "model.compile('adam', 'mse')"
TRAIN = "history = model.fit(x, y, batch_size=8, verbose=0)"
SHOWN = "[np.round(one, 6).tolist() for one in model.get_weights()]"


@pytest.fixture(autouse=True)
def without_a_seed(kernel: Kernel) -> None:
    """What another test has set in this kernel does not count."""
    forget = "import sys\nif 'tensorflow' in sys.modules: sys.modules['tensorflow'].random.set_seed(None)"
    kernel.run(f"{forget}\ndel sys", silent=True)


def test_the_training_stays_behind_and_its_weights_travel(kernel: Kernel, replayed: Replayed) -> None:
    kernel.cells(SETUP, DATA, MODEL, COMPILE, TRAIN, "fit(model, x, y)")
    found = kernel.found()
    assert found.needs_none_of(6)
    assert found.value_names == {"model"}
    assert replayed(found, SHOWN) == kernel.live(SHOWN)


@pytest.mark.long
def test_a_training_with_more_in_its_cell_runs_again_and_gets_the_weights(kernel: Kernel, replayed: Replayed) -> None:
    kernel.cells(SETUP, DATA, f"{MODEL}\n{COMPILE}\n{TRAIN}", TRAIN, "model.layers[0].trainable = False", "fit(model)")
    shown = (SHOWN, "model.layers[0].trainable", "int(model.optimizer.iterations)")
    assert replayed(kernel.found(), *shown) == kernel.live(*shown)


@pytest.mark.soak
def test_models_that_share_its_layers_get_them(kernel: Kernel, replayed: Replayed) -> None:
    kernel.cells(
        SETUP,
        DATA,
        f"{MODEL.replace('model', 'base')}\nbase.compile('sgd', 'mse')",
        "part = keras.Model(base.inputs, base.layers[0].output)",
        "base.fit(x, y, verbose=0, batch_size=8)",
        "model = keras.Sequential([part, layers.Dense(2, kernel_initializer='ones')])",
        "fit(model, x, y)",
    )
    found = kernel.found()
    assert replayed(found, SHOWN) == kernel.live(SHOWN)


@pytest.mark.long
def test_a_seeded_training_is_repeated(kernel: Kernel, replayed: Replayed) -> None:
    kernel.cells(SETUP, "keras.utils.set_random_seed(3)", DATA, MODEL, COMPILE, TRAIN, "fit(model, x, y)")
    found = kernel.found()
    assert found.value_names == set()
    assert replayed(found, SHOWN) == kernel.live(SHOWN)


@pytest.mark.long
def test_weights_that_are_too_large_are_told_with_what_to_do(kernel: Kernel) -> None:
    large = MODEL.replace("Dense(3)", "Dense(4_000_000)")
    kernel.cells(SETUP, DATA, large, "model.compile('sgd', 'mse')", TRAIN, "fit(model, x, y)")
    error = kernel.found().error
    assert "`model` was trained in cell [6] while TensorFlow had no seed" in error
    assert "set_random_seed(0)" in error
    assert "save_weights" in error
