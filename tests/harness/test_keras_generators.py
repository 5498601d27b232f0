"""Generators as data of fit(), and random numbers: what they see, what they raise, and what a restart brings back."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from det_harness.frameworks.keras.validation import ValidationFeed
from keras_programs import Jitter
from keras_support import Halves, Session, arrays, digits, endless, filled
from shared_model import fresh_model

from det_native.errors import InvalidDataError
from det_native.keras import TFKerasNativeContext

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", autouse=True)
def loaded() -> None:
    """Import and trace what the whole module needs, once."""
    fresh_model().fit(*digits()[2:], verbose=0)


def test_an_exception_in_a_generator_arrives_as_itself(tmp_path: Path) -> None:
    class BrokenRecordError(Exception):
        pass

    def broken() -> Any:
        yield from (Halves()[0], Halves()[1])
        raise BrokenRecordError("record 129")

    with pytest.raises(BrokenRecordError, match="record 129"):
        Session(tmp_path).context.wrap_model(fresh_model()).fit(broken(), steps_per_epoch=9, verbose=0)


def test_data_that_end_early_are_saved_and_said(tmp_path: Path) -> None:
    session = Session(tmp_path)
    short = iter([Halves()[index] for index in range(5)])
    with pytest.warns(UserWarning, match="ended after 5 of 18 batches"):
        session.context.wrap_model(fresh_model()).fit(short, steps_per_epoch=9, epochs=2, verbose=0)
    assert session.folders.saved == [5]
    assert session.runs[0].outcome.stopped


def test_random_numbers_of_the_process_are_not_drawn_by_a_generator(tmp_path: Path) -> None:
    def noisy() -> Any:
        while True:
            x, y = Halves()[0]
            yield x + np.random.normal(size=x.shape), y

    model = Session(tmp_path).context.wrap_model(fresh_model())
    before = np.random.get_state()[2]
    model.fit(noisy(), steps_per_epoch=4, verbose=0)
    assert np.random.get_state()[2] == before


def test_every_validation_takes_the_next_batches_of_a_generator(tmp_path: Path) -> None:
    pulled: list[int] = []

    def counted() -> Iterator[Any]:
        for number in count():
            pulled.append(number)
            yield Halves()[number % 10]

    seen: list[float] = []
    keep = tf.keras.callbacks.LambdaCallback(on_test_batch_end=lambda batch, logs: seen.append(logs["loss"]))
    session = Session(tmp_path, min_validation_period={"batches": 7})
    model = session.context.wrap_model(fresh_model())
    model.fit(**arrays(), epochs=2, validation_data=counted(), validation_steps=3, callbacks=[keep], verbose=0)
    validations = [batch for batch, _ in session.recorder.validations]
    assert validations == [7, 14, 20, 27, 34, 40]
    assert pulled == list(range(3 * len(validations)))
    assert len(seen) == len(pulled)


def test_a_validation_generator_that_ends_is_told_with_its_length(tmp_path: Path) -> None:
    model = Session(tmp_path).context.wrap_model(fresh_model())
    with pytest.raises(InvalidDataError, match=r"ended after 5 batches: each validation takes validation_steps=3"):
        model.fit(
            **arrays(),
            epochs=3,
            validation_data=iter([Halves()[number] for number in range(5)]),
            validation_steps=3,
            verbose=0,
        )


def test_an_exception_in_a_validation_generator_arrives_as_itself(tmp_path: Path) -> None:
    def broken() -> Iterator[Any]:
        yield Halves()[0]
        raise ZeroDivisionError("record 65")

    model = Session(tmp_path).context.wrap_model(fresh_model())
    with pytest.raises(ZeroDivisionError, match="record 65"):
        model.fit(**arrays(), validation_data=broken(), validation_steps=3, verbose=0)


@pytest.mark.parametrize(
    "more", [{}, pytest.param({"validation_steps": 2, "use_multiprocessing": True}, marks=pytest.mark.long)]
)
def test_a_validation_generator_that_begins_anew_after_a_restart_says_so(
    more: dict[str, Any], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    call: list[Any] = []
    context = TFKerasNativeContext(Session(tmp_path).context.env, on_fit=call.append, role="local")
    context.wrap_model(fresh_model()).fit(**arrays(), validation_data=endless(), verbose=0, **more)
    ValidationFeed(call[0], filled(call[0], {}))
    assert caplog.text.count("after a restart it starts again") == 1
    caplog.clear()
    context.wrap_model(fresh_model()).fit(**arrays(), validation_data=endless(), validation_steps=2, verbose=0)
    ValidationFeed(call[1], filled(call[1], {}))
    assert "starts again" not in caplog.text


class Trembling(tf.keras.layers.Layer):
    """Adds noise from operations with a state of their own."""

    def call(self, inputs: Any) -> Any:
        return inputs + tf.random.normal(tf.shape(inputs))


class Shaking(Trembling):
    """The same inside a function of its own."""

    @tf.function
    def call(self, inputs: Any) -> Any:
        return super().call(inputs)


def noisy_model(*layers: Any) -> Any:
    inner = fresh_model()
    model = tf.keras.Sequential([tf.keras.Input((64,)), *layers, *inner.layers])
    model.compile("sgd", inner.loss)
    return model


@pytest.mark.parametrize(("layer", "named"), [(Trembling, "/trembling/random_normal)"), (Shaking, "(random_normal)")])
def test_random_operations_that_no_checkpoint_can_hold_are_named_once(
    layer: Any, named: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    session = Session(tmp_path, min_checkpoint_period={"batches": 4})
    session.context.wrap_model(noisy_model(layer(name="trembling"))).fit(**arrays(), epochs=2, verbose=0)
    assert len(session.folders.saved) > 2
    (told,) = [record.getMessage() for record in caplog.records if "random numbers" in record.getMessage()]
    assert named in told
    assert "tf.random.Generator" in told


def test_random_layers_of_keras_and_generators_that_are_kept_need_no_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    session = Session(tmp_path, min_checkpoint_period={"batches": 4})
    layers = (tf.keras.layers.GaussianNoise(0.1), tf.keras.layers.Dropout(0.5), Jitter())
    session.context.wrap_model(noisy_model(*layers)).fit(**arrays(), epochs=2, verbose=0)
    assert session.folders.saved
    assert "random numbers" not in caplog.text
