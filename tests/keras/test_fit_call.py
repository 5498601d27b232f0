"""What a call of fit says about the experiment, and which calls are refused before anything runs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import tensorflow as tf
from det_harness.frameworks.keras.arrays import packed

from det_native.errors import ArgumentError, InvalidDataError, SignatureError, TrialDefinitionError
from det_native.keras import FitCall, SequenceAdapter, TFKerasNativeContext
from det_native.keras.generations import NUMBER
from det_native.schema.environment import TrialEnvironment

pytestmark = pytest.mark.slow

X, Y = np.zeros((100, 4), "float32"), np.zeros(100, "int64")


class Twelves(tf.keras.utils.Sequence):
    def __len__(self) -> int:
        return 5

    def __getitem__(self, index: int) -> Any:
        return np.full((12, 4), np.random.normal()), Y[:12]


def twelves() -> Any:
    while True:
        yield X[:12], Y[:12]


def dataset(size: int | None = 30, **batch: Any) -> Any:
    rows = tf.data.Dataset.from_tensor_slices((X, Y))
    return rows if size is None else rows.shuffle(9).batch(size, **batch).map(lambda x, y: (x + 1, y)).prefetch(1)


def context(config: dict[str, Any] | None = None, **hparams: Any) -> TFKerasNativeContext:
    return TFKerasNativeContext(TrialEnvironment(config or {}, hparams), on_fit=lambda call: call)


def model(compiled: bool = True) -> Any:
    made = tf.keras.Sequential([tf.keras.Input((4,)), tf.keras.layers.Dense(2)])
    if compiled:
        made.compile("sgd", "mse")
    return made


def fit(*args: Any, **kwargs: Any) -> FitCall:
    call: FitCall = context().wrap_model(model()).fit(*args, **kwargs)
    return call


FILLS: dict[str, tuple[dict[str, Any], tuple[int, int, int, str]]] = {
    "defaults": ({"x": X, "y": Y}, (1, 100, 32, "loss")),
    "epochs and batch size": ({"x": X, "y": Y, "epochs": 4, "batch_size": 50}, (4, 100, 50, "loss")),
    "tables": ({"x": pd.DataFrame(X), "y": pd.Series(Y), "epochs": 2}, (2, 100, 32, "loss")),
    "validation": ({"x": X, "y": Y, "validation_data": (X, Y)}, (1, 100, 32, "val_loss")),
    "split": ({"x": X, "y": Y, "validation_split": 0.2}, (1, 80, 32, "val_loss")),
    "initial epoch": ({"x": X, "y": Y, "initial_epoch": 2, "epochs": 5}, (3, 100, 32, "loss")),
    "steps": ({"x": X, "y": Y, "batch_size": 10, "steps_per_epoch": 3}, (1, 30, 10, "loss")),
    "steps make the batch size": ({"x": X, "y": Y, "steps_per_epoch": 8}, (1, 104, 13, "loss")),
    "fewer than a batch": ({"x": X[:5], "y": Y[:5]}, (1, 5, 5, "loss")),
    "fewer than the batch size": ({"x": X[:5], "y": Y[:5], "batch_size": 64}, (1, 5, 5, "loss")),
    "Sequence": ({"x": Twelves(), "epochs": 2}, (2, 60, 12, "loss")),
    "generator": ({"x": twelves(), "steps_per_epoch": 7}, (1, 84, 12, "loss")),
    "Dataset": ({"x": dataset()}, (1, 120, 30, "loss")),
    "Dataset of fixed batches": ({"x": dataset(30, drop_remainder=True)}, (1, 90, 30, "loss")),
    "endless Dataset": ({"x": dataset().repeat(), "steps_per_epoch": 6}, (1, 180, 30, "loss")),
    "Dataset of unknown length": ({"x": dataset().filter(lambda x, y: True)}, (1, 120, 30, "loss")),
}


@pytest.mark.parametrize("name", FILLS)
def test_a_call_fills_what_the_configuration_leaves_open(name: str) -> None:
    arguments, (epochs, records, batch_size, metric) = FILLS[name]
    assert fit(**arguments).configuration_fills() == {
        "searcher.max_length": {"epochs": epochs},
        "searcher.metric": metric,
        "hyperparameters.global_batch_size": batch_size,
        "records_per_epoch": records,
    }


def test_tables_are_trained_as_their_arrays_are() -> None:
    rows, labels = np.random.default_rng(0).normal(size=(100, 4)), Y + 3
    table, column = pd.DataFrame(rows, columns=list("abcd")), pd.Series(labels, index=range(100, 200))
    call = fit(x=table, y=column, validation_split=0.25)
    expected = fit(x=rows, y=labels[:, None], validation_split=0.25)
    for found, same in ((call.training, expected.training), (call.validation, expected.validation)):
        assert found is not None
        assert same is not None
        for one, other in zip(packed(found), packed(same), strict=True):
            assert one.dtype == other.dtype
            assert np.array_equal(one, other)


def test_looking_at_a_sequence_draws_no_random_numbers_of_the_process() -> None:
    wrapped = context().wrap_model(model())
    np.random.seed(1)
    expected = np.random.normal()
    np.random.seed(1)
    wrapped.fit(Twelves()).configuration_fills()
    assert np.random.normal() == expected


REFUSED: dict[str, tuple[dict[str, Any], type[Exception], str]] = {
    "lengths differ": ({"x": X, "y": Y[:50]}, InvalidDataError, r"x has 100; y has 50"),
    "weights too short": ({"x": X, "y": Y, "sample_weight": Y[:9]}, InvalidDataError, r"sample_weight has 9"),
    "inputs differ": ({"x": [X, X[:7]], "y": Y}, InvalidDataError, r"x has 100, 7|x has 7, 100"),
    "no records": ({"x": X[:0], "y": Y[:0]}, InvalidDataError, "no records"),
    "nothing": ({}, InvalidDataError, "x is None"),
    "a string": ({"x": "digits.csv"}, InvalidDataError, "made of str"),
    "y with Dataset": ({"x": dataset(), "y": Y}, InvalidDataError, "y cannot be given"),
    "weights with Sequence": ({"x": Twelves(), "sample_weight": Y}, InvalidDataError, "sample_weight cannot be given"),
    "split of Dataset": ({"x": dataset(), "validation_split": 0.1}, InvalidDataError, "give validation_data"),
    "split leaves nothing": ({"x": X[:1], "y": Y[:1], "validation_split": 0.1}, InvalidDataError, "at least one"),
    "validation lengths": ({"x": X, "y": Y, "validation_data": (X, Y[:3])}, InvalidDataError, "of validation_data"),
    "validation parts": ({"x": X, "y": Y, "validation_data": (X, Y, Y, Y)}, InvalidDataError, "4 parts"),
    "epochs": ({"x": X, "y": Y, "epochs": 2, "initial_epoch": 2}, ArgumentError, "above initial_epoch"),
    "steps": ({"x": X, "y": Y, "steps_per_epoch": 0, "batch_size": -1}, ArgumentError, "steps_per_epoch.*at least 1"),
    "split above 1": ({"x": X, "y": Y, "validation_split": 1.5}, ArgumentError, "below 1"),
    "misspelt argument": (
        {"x": X, "y": Y, "nb_epoch": 3},
        TypeError,
        r"^fit\(\) takes no argument 'nb_epoch'\. Did you mean epochs\?$",
    ),
    "unknown argument": ({"x": X, "y": Y, "foo": 3}, SignatureError, "'foo'. It takes: x, y, batch_size"),
}


def test_too_many_arguments_are_refused_by_the_name_of_the_call() -> None:
    with pytest.raises(TypeError, match=r"^fit\(\) does not take these arguments: too many positional arguments\.$"):
        fit(*range(99))


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_trained_is_refused_at_once(name: str) -> None:
    arguments, error, message = REFUSED[name]
    with pytest.raises(error, match=message):
        fit(**arguments)


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (dataset().repeat(), "steps_per_epoch"),
        (dataset(None).map(lambda x, y: y), "not batched|no batches"),
        (dataset().take(0), "empty"),
        (iter([]), "exhausted"),
    ],
)
def test_an_epoch_that_cannot_be_measured_is_refused(x: Any, message: str) -> None:
    with pytest.raises(InvalidDataError, match=message):
        fit(x).configuration_fills()


def test_a_generator_needs_a_length_from_somewhere() -> None:
    with pytest.raises(InvalidDataError, match="pass steps_per_epoch"):
        fit(twelves()).configuration_fills()
    environment = TrialEnvironment({"records_per_epoch": 48}, {"global_batch_size": 12})
    assert fit(twelves()).steps_per_epoch(environment) == 4


def test_a_model_that_is_not_compiled_is_refused() -> None:
    with pytest.raises(TrialDefinitionError, match=r"Call model.compile\(...\) before fit\(\)"):
        context().wrap_model(model(compiled=False)).fit(X, Y)


WITHOUT_EFFECT = {
    "batch_size has no effect": {"x": dataset(), "batch_size": 8},
    "BackupAndRestore has no effect": {"x": X, "y": Y, "callbacks": [tf.keras.callbacks.BackupAndRestore("backup")]},
}


@pytest.mark.parametrize("message", WITHOUT_EFFECT)
def test_an_argument_without_effect_is_named_in_one_warning(message: str) -> None:
    with pytest.warns(UserWarning, match=r"^fit\(\): ") as caught:
        fit(**WITHOUT_EFFECT[message])
    # Keras's own random numbers give a DeprecationWarning of Python's, once a test before has seeded them.
    [warning] = [warning for warning in caught if warning.category is UserWarning]
    assert all(part in str(warning.message) for part in message.split(", "))
    assert warning.filename == __file__


def test_a_call_warns_of_nothing_that_plain_keras_takes_in_silence(recwarn: pytest.WarningsRecorder) -> None:
    fit(X, Y, batch_size=101, shuffle=True, validation_data=(X, Y), validation_freq=2, validation_batch_size=4)
    fit(X, sample_weight=X[:, 0])
    fit(Twelves(), shuffle=False, **({"workers": 2, "max_queue_size": 3} if NUMBER == 2 else {}))
    assert not [str(warning.message) for warning in recwarn if "fit()" in str(warning.message)]


@pytest.mark.parametrize(
    ("metric", "validated", "message"),
    [("val_loss", False, "no validation data"), ("accuracy", True, "'val_accuracy'")],
)
def test_a_metric_that_the_call_cannot_give_is_refused(metric: str, validated: bool, message: str) -> None:
    call = fit(X, Y, validation_data=(X, Y) if validated else None)
    with pytest.raises(TrialDefinitionError, match=message):
        call.check(TrialEnvironment({"searcher": {"metric": metric}}, {"global_batch_size": 10}))


@pytest.mark.parametrize(("size", "slots", "is_said"), [(25, 2, True), (26, 2, False), (25, 1, False), (1, 2, False)])
def test_batches_that_slots_cannot_share_are_told(
    caplog: pytest.LogCaptureFixture, size: int, slots: int, is_said: bool
) -> None:
    environment = TrialEnvironment({"resources": {"slots_per_trial": slots}}, {})
    fit(X, Y, batch_size=size).check(environment)
    said = "A batch of 25 records cannot be divided among 2 slots: each has 24 records."
    assert (said in caplog.text) == is_said


def test_a_configured_batch_size_above_the_data_is_one_batch_and_told(caplog: pytest.LogCaptureFixture) -> None:
    environment = TrialEnvironment({"records_per_epoch": 100}, {"global_batch_size": 200})
    call = fit(X, Y)
    call.check(environment)
    assert "hyperparameters.global_batch_size is 200, but there are only 100 records" in caplog.text
    assert (call.per_slot_batch_size(environment), call.steps_per_epoch(environment)) == (100, 1)


def test_a_dataset_that_several_processes_would_read_whole_is_refused() -> None:
    two = {"resources": {"slots_per_trial": 2}}
    made = context(two)
    call = made.wrap_model(model()).fit(dataset())
    with pytest.raises(InvalidDataError, match="not wrapped, and each of the 2 processes would read all of it"):
        call.check(made.env)
    made = context(two)
    rows = made.wrap_dataset(tf.data.Dataset.from_tensor_slices((X, Y))).shuffle(10).batch(5).prefetch(1)
    made.wrap_model(model()).fit(rows).check(made.env)


def test_validation_data_without_an_end_need_a_number_of_batches() -> None:
    endless = dataset().repeat()
    call = fit(X, Y, validation_data=endless)
    with pytest.raises(InvalidDataError, match="The validation Dataset has no end: leave repeat"):
        call.check(call.context.env)
    call = fit(X, Y, validation_data=endless, validation_steps=2)
    call.check(call.context.env)


def test_an_adapter_says_how_its_sequence_is_read() -> None:
    training = SequenceAdapter(Twelves(), workers=3, use_multiprocessing=False, max_queue_size=7)
    call = fit(training, validation_data=SequenceAdapter(Twelves(), workers=2, use_multiprocessing=False))
    assert isinstance(call.training.x, Twelves)
    assert (call.arguments["workers"], call.arguments["max_queue_size"]) == (3, 7)
    assert call.validation is not None
    assert isinstance(call.validation.x, Twelves)
    assert call.validation_queue["workers"] == 2
