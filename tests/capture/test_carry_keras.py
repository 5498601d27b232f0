"""Keras models that travel: by configuration and numbers, in place where the program has made the model."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from det_native.capture.carry import pack
from det_native.heap.compare import Entry, Table, differences
from det_native.heap.values import AnotherBuildError, put_values

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def keras() -> Any:
    return pytest.importorskip("keras")


def _classes(keras: Any) -> dict[str, Any]:
    """Return a layer, a loss and a model as a cell defines them."""

    class Twice(keras.layers.Layer):  # type: ignore[misc]
        def call(self, x: Any) -> Any:
            return x * 2

    class Sub(keras.Model):  # type: ignore[misc]
        def __init__(self, units: int) -> None:
            super().__init__()
            self.dense = keras.layers.Dense(units)

        def call(self, x: Any) -> Any:
            return self.dense(x)

    for one in (Twice, Sub):
        one.__module__, one.__qualname__ = "__main__", one.__name__
    return {"Twice": Twice, "Sub": Sub}


def _built(keras: Any, code: dict[str, Any]) -> Any:
    model = keras.Sequential(
        [keras.Input((3,)), code["Twice"](), keras.layers.Dense(2), keras.layers.BatchNormalization()]
    )
    model.compile(keras.optimizers.Adam(0.01), "mse")
    return model


def _trained(model: Any) -> Any:
    model.fit(np.ones((8, 3), "float32"), np.zeros((8, 2), "float32"), verbose=0)
    return model


def _numbers(model: Any) -> list[list[float]]:
    variables = model.optimizer.variables
    held = [*model.variables, *(variables() if callable(variables) else variables)]
    return [np.asarray(one).ravel().tolist() for one in held]


@pytest.mark.parametrize(("in_place", "is_trained"), [(True, True), (False, True), (False, False)])
def test_a_model_and_its_optimizer_are_what_they_were(keras: Any, in_place: bool, is_trained: bool) -> None:
    code = _classes(keras)
    model = _trained(_built(keras, code)) if is_trained else _built(keras, code)
    here = {**code, "model": model, "optimizer": model.optimizer, "parts": {"m": model}}
    names = {"model", "optimizer", "parts"}
    packed = pack(names, here)
    assert packed.code == {"Twice"}
    assert packed.content == pack(names, here).content  # stored once
    again = _built(keras, code)
    there = {**code, "model": again, "optimizer": again.optimizer}
    put_values(packed.content, there, dict.fromkeys(names, in_place))
    assert _numbers(there["model"]) == _numbers(model)
    assert there["optimizer"] is there["model"].optimizer
    assert there["parts"]["m"] is there["model"]
    assert (there["model"] is again) == in_place


def test_the_numbers_alone_go_into_a_model_of_the_same_build(keras: Any) -> None:
    code = _classes(keras)
    model, again = code["Sub"](2), code["Sub"](2)
    x = np.ones((1, 3), "float32")
    model(x), again(x)
    here = {**code, "model": model}
    packed = pack(["model"], here, states=["model"])
    there = {**code, "model": again}
    put_values(packed.content, there, {"model": True})
    assert again.predict(x, verbose=0).tolist() == model.predict(x, verbose=0).tolist()
    other = {**code, "model": code["Sub"](5)}
    other["model"](x)
    put_values(packed.content, other, {"model": True})  # becomes that build
    assert other["model"](x).numpy().tolist() == model.predict(x, verbose=0).tolist()
    other = {**code, "model": code["Twice"]()}
    with pytest.raises(AnotherBuildError, match="model"):
        put_values(packed.content, other, {"model": True})


@pytest.mark.parametrize("in_place", [True, False])
@pytest.mark.parametrize("form", ["sequential", "functional", "without an input"])
def test_what_keras_makes_again_is_no_difference(keras: Any, form: str, in_place: bool) -> None:
    def built() -> Any:
        dense = keras.layers.Dense(2)
        if form == "functional":
            inputs = keras.Input((3,))
            model = keras.Model(inputs, dense(keras.layers.Dropout(0.5)(inputs)))
        else:
            model = keras.Sequential([*([keras.Input((3,))] if form == "sequential" else []), dense])
        model.compile("adam", "mse", metrics=["accuracy"])
        return model

    def table(model: Any) -> dict[str, Entry]:
        return Table({"the model": model}).entries

    model = _trained(built())
    there = {"model": built()}
    put_values(pack(["model"], {"model": model}).content, there, {"model": in_place})
    other = there["model"]
    assert [entry.title for _, entry, _ in differences(table(model), table(other))] == []
    other.layers[-1].activation = keras.activations.relu
    assert list(differences(table(model), table(other)))
    other.layers[-1].activation = model.layers[-1].activation
    other.layers[-1].kernel.assign_add([[1.0, 0.0]] * 3)
    assert [entry.title for _, entry, _ in differences(table(model), table(other))] != []
