"""``trainable`` of layers, after a training elsewhere: what the notebook has set since ``compile()`` stays."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from det_harness.frameworks.keras import outside
from det_harness.trial.heap_file import KeptChanges

from det_native.heap.call import CallSnapshot

keras = tf.keras


def _set_since_compile() -> Any:
    layers = [keras.layers.Dense(3, trainable=False), keras.layers.Dense(1)]
    model = keras.Sequential([keras.layers.Input((4,)), *layers])
    model.compile("sgd", "mse")
    model.layers[0].trainable = True
    return model


@pytest.mark.parametrize("freezes", [False, True])
def test_trainable_is_after_a_fit_elsewhere_what_it_is_after_one_here(tmp_path: Path, freezes: bool) -> None:
    worker, notebook = _set_since_compile(), _set_since_compile()
    there, here = (CallSnapshot({"model": model}) for model in (worker, notebook))

    def end(logs: Any) -> None:
        worker.layers[1].trainable = not freezes
        KeptChanges(lambda: there).save(tmp_path)

    worker.fit(
        np.ones((8, 4)), np.ones((8, 1)), verbose=0, callbacks=[keras.callbacks.LambdaCallback(on_train_end=end)]
    )
    call: Any = SimpleNamespace(snapshot=here, model=notebook, callbacks=list)
    outside.bring_home(tmp_path, call)
    wanted, got = ([layer.trainable for layer in model.layers] for model in (worker, notebook))
    assert got == wanted
