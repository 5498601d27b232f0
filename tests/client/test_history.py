"""Rows of metrics as Keras's history, and the choice of the best."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from det_native.client.history import as_dictionary, epoch_ends, keras_history
from det_native.schema.ranking import score
from det_native.schema.rest import MetricRow


def rows(values: dict[int, dict[str, object]]) -> list[MetricRow]:
    return [MetricRow(batch=batch, metrics=metrics) for batch, metrics in values.items()]


def history_of(
    training: list[MetricRow],
    validation: list[MetricRow],
    *,
    records: int = 0,
    batch_size: int = 1,
    epochs: int | None = None,
    keras: bool = False,
) -> dict[str, list[float]]:
    ends = epoch_ends(
        training, validation, records_per_epoch=records, batch_size=batch_size, epochs=epochs, whole_batches=keras
    )
    return keras_history(training, validation, ends=ends, running=keras)


def test_one_row_for_each_epoch_mean_of_batches_and_last_validation() -> None:
    training = rows({1: {"loss": 4.0}, 2: {"loss": 2.0}, 3: {"loss": 1.0}, 4: {"loss": 0.0}})
    validation = rows({0: {"loss": 9.0}, 1: {"loss": 3.0}, 2: {"loss": 2.5}, 4: {"loss": 0.5}})
    history = history_of(training, validation, records=2)
    assert history == {"loss": [3.0, 0.5], "val_loss": [2.5, 0.5]}


def test_running_means_take_the_last_row() -> None:
    training = rows({1: {"loss": 4.0}, 2: {"loss": 3.0}, 3: {"loss": 1.0}})
    assert history_of(training, [], records=2, keras=True) == {"loss": [3.0, 1.0]}


def test_without_epochs_a_row_for_each_validation_and_one_for_the_rest() -> None:
    training = rows({1: {"loss": 4.0}, 2: {"loss": 2.0}, 3: {"loss": 1.0}})
    validation = rows({2: {"val_loss": 2.5}})
    history = history_of(training, validation)
    assert history == {"loss": [3.0, 1.0], "val_loss": [2.5]}


def test_epoch_without_validation_has_no_value_as_in_keras() -> None:
    training = rows({batch: {"loss": 1.0} for batch in (1, 2, 3)})
    history = history_of(training, rows({2: {"val_a": 5.0}}), records=1, keras=True)
    assert history == {"loss": [1.0, 1.0, 1.0], "val_a": [5.0]}


def test_nothing_reported_is_an_empty_history() -> None:
    assert history_of([], [], records=3, keras=True) == {}


def test_epochs_of_keras_end_with_their_smaller_batch() -> None:
    training = rows({batch: {"loss": float(batch)} for batch in range(1, 7)})
    assert history_of(training, [], records=100, batch_size=40, keras=True) == {"loss": [3.0, 6.0]}
    assert history_of(training, [], records=100, batch_size=40, epochs=3, keras=True) == {"loss": [2.0, 4.0, 6.0]}


@given(records=st.integers(1, 200), batch_size=st.integers(1, 64), epochs=st.integers(1, 12))
def test_a_length_in_epochs_gives_as_many_rows(records: int, batch_size: int, epochs: int) -> None:
    length = epochs * records // batch_size
    training = rows({batch: {"loss": 1.0} for batch in range(1, length + 1)})
    history = history_of(training, [], records=records, batch_size=batch_size)
    assert len(history.get("loss", [])) == (epochs if records >= batch_size else length)


def test_not_a_number_travels_as_a_word() -> None:
    row = as_dictionary(MetricRow(batch=7, metrics={"loss": "NaN", "top": "-Infinity", "none": None, "label": "cat"}))
    assert math.isnan(row.pop("loss"))
    assert row == {"batch": 7, "top": -math.inf, "label": "cat"}


def test_a_validation_of_a_loops_own_has_its_value_where_it_is_one() -> None:
    training = rows({1: {"val_loss": "NaN", "loss": "NaN"}, 2: {"val_loss": 0.5, "loss": 1.0}, 3: {"val_loss": "NaN"}})
    history = history_of(training, [], records=2)
    assert history["val_loss"][0] == 0.5
    assert math.isnan(history["val_loss"][1])
    assert math.isnan(history["loss"][0])


def test_metrics_called_as_columns_get_another_name() -> None:
    row = MetricRow(batch=7, metrics={"batch": 0.5, "trial": 2.0, "epoch": 1.0})
    assert as_dictionary(row) == {"batch": 7, "batch (metric)": 0.5, "trial (metric)": 2.0, "epoch": 1.0}
    row = MetricRow(batch=7, metrics={"batch": 0.5, "batch (metric)": 2.0})
    assert as_dictionary(row) == {"batch": 7, "batch (metric) (metric)": 0.5, "batch (metric)": 2.0}


@given(
    length=st.integers(1, 60),
    epoch=st.integers(1, 20),
)
def test_every_batch_counts_once(length: int, epoch: int) -> None:
    training = rows({batch: {"one": 1.0, "batch_number": float(batch)} for batch in range(1, length + 1)})
    history = history_of(training, [], records=epoch)
    assert len(history["one"]) == math.ceil(length / epoch)
    sizes = [min(epoch, length - start) for start in range(0, length, epoch)]
    total = math.fsum(mean * size for mean, size in zip(history["batch_number"], sizes, strict=True))
    assert total == pytest.approx(length * (length + 1) / 2)


@pytest.mark.parametrize("bad", [None, "NaN", math.nan, math.inf, "-Infinity", "text", True])
def test_what_is_no_number_is_never_best(bad: object) -> None:
    assert score(bad, smaller_is_better=True) == math.inf
    assert score(bad, smaller_is_better=False) == math.inf
    assert score(2, smaller_is_better=False) < score(1, smaller_is_better=False)
