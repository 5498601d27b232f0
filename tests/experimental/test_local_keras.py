"""``det.experimental.keras.init(..., local=True)``: real training of a Keras model in this process."""

import os
import pickle
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from IPython.lib.pretty import pretty

tf = pytest.importorskip("tensorflow")

from keras_generation import only_keras_2  # noqa: E402 (after the check for tensorflow)

import det_native as det  # noqa: E402
from det_native.errors import ArgumentError, ConfigurationError, NotRecordedError, UnsupportedFeatureError  # noqa: E402
from det_native.schema.states import ExperimentState  # noqa: E402

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("recorded")]

X = np.linspace(-1, 1, 50, dtype="float32").reshape(-1, 1)
Y = 2 * X + 1


def make_model(context: Any, units: int = 4) -> Any:
    model = context.wrap_model(
        tf.keras.Sequential([tf.keras.Input((1,)), tf.keras.layers.Dense(units), tf.keras.layers.Dense(1)])
    )
    model.compile("sgd", "mse", metrics=["mae"])
    return model


def fit(model: Any, **arguments: Any) -> Any:
    return model.fit(X, Y, batch_size=20, verbose=0, **arguments)


def test_without_a_configuration_it_trains_to_the_end_and_returns_kerass_history() -> None:
    context = det.experimental.keras.init(local=True)
    history = fit(make_model(context), validation_data=(X, Y), epochs=4)
    assert isinstance(history, tf.keras.callbacks.History)
    assert len(history.history["val_mae"]) == 4
    assert history.history["loss"][-1] < history.history["loss"][0]


def test_a_trial_counts_the_smaller_last_batch_of_each_epoch() -> None:
    context = det.experimental.keras.init({"records_per_epoch": 50}, local=True)
    fit(make_model(context), epochs=2)  # 50 records in batches of 20
    trial = context.experiment.trials[0].detail()
    assert (trial.batches, trial.target_batches) == (6, 6)


class MadeTrial(det.keras.TFKerasTrial):
    """Trains on 50 records."""

    def __init__(self, context: Any) -> None:
        self.context = context

    def build_model(self) -> Any:
        return make_model(self.context)

    def build_training_data_loader(self) -> Any:
        return X, Y

    def build_validation_data_loader(self) -> Any:
        return X, Y


@pytest.mark.long
def test_a_trial_class_counts_them_too() -> None:
    config = {
        "records_per_epoch": 50,
        "hyperparameters": {"global_batch_size": 20},
        "searcher": {"name": "single", "metric": "val_loss", "max_length": {"epochs": 2}},
    }
    trial = det.experimental.create(MadeTrial, config, local=True).trials[0].detail()
    assert (trial.batches, trial.target_batches) == (6, 6)


def test_a_history_is_plain_keras() -> None:
    history = fit(make_model(det.experimental.keras.init(local=True)), epochs=1)
    assert pretty(history).startswith("<keras")
    history.set_model(None)  # which pickles as Keras has it
    assert b"det_native" not in pickle.dumps(history)


@pytest.mark.long
def test_the_experiment_has_the_same_shape_as_elsewhere() -> None:
    context = det.experimental.keras.init({"name": "line"}, local=True)
    history = fit(make_model(context), validation_data=(X, Y), epochs=3)
    experiment = context.experiment
    assert experiment.state is ExperimentState.COMPLETED
    assert experiment.name == "line"
    assert experiment.history.keys() == history.history.keys()
    for name, values in history.history.items():
        assert experiment.history[name] == pytest.approx(values)
    assert experiment.trials[0].metrics("validation")[-1]["batch"] == 9
    assert experiment.top_checkpoint().batch == 9
    assert experiment.config["records_per_epoch"] == 50


def test_without_validation_data_the_metric_is_loss() -> None:
    context = det.experimental.keras.init(local=True)
    fit(make_model(context), epochs=2)
    assert context.experiment.config["searcher"]["metric"] == "loss"
    assert set(context.experiment.history) == {"loss", "mae"}
    assert context.experiment.top_checkpoint().batch == 6
    assert not context.experiment.detail().validates
    figure = context.experiment.plot()
    assert {line.get_label() for axis in figure.axes for line in axis.get_lines()} == {"training"}
    assert [row["batch"] for row in context.experiment.metrics()] == [1, 2, 3, 4, 5, 6]


class AddsNotANumber(tf.keras.callbacks.Callback):
    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        logs["added"] = float("nan") if epoch == 0 else 1.0


def undefined(true: Any, predicted: Any) -> Any:
    return tf.reduce_mean(predicted - true) * float("nan")


@pytest.mark.long
@pytest.mark.parametrize("validated", [True, False])
def test_not_a_number_of_a_side_metric_is_recorded(validated: bool) -> None:
    context = det.experimental.keras.init(local=True)
    model = make_model(context)
    model.compile("sgd", "mse", metrics=[undefined])
    further = {"validation_data": (X, Y)} if validated else {}
    fit(model, epochs=2, callbacks=[AddsNotANumber()], **further)
    experiment = context.experiment
    rows = experiment.metrics("training")
    assert all(np.isnan(row["undefined"]) for row in rows)
    assert [str(row["added"]) for row in rows if "added" in row] == ["nan", "1.0"]
    for row in experiment.metrics("validation"):
        assert np.isnan(row["val_undefined" if validated else "undefined"])
    assert all(map(np.isnan, experiment.history["undefined"]))
    assert np.isnan(experiment.history["added"][0])


@pytest.mark.long
def test_what_a_callback_adds_is_shown_where_trials_are_compared_by_it_without_validation() -> None:
    class AddsScore(tf.keras.callbacks.Callback):
        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            logs["score"] = 1.0 + epoch

    context = det.experimental.keras.init({"searcher": {"metric": "score"}}, local=True)
    fit(make_model(context), epochs=2, callbacks=[AddsScore()])
    rows = context.experiment.metrics()
    assert [row["score"] for row in rows if "score" in row] == [1.0, 2.0]


@pytest.mark.long
def test_hyperparameters_are_one_seeded_sample() -> None:
    config = {
        "hyperparameters": {"units": det.Integer(2, 99), "rate": det.Double(0, 1)},
        "reproducibility": {"experiment_seed": 3},
    }
    first = det.experimental.keras.init(config, local=True)
    second = det.experimental.keras.init(config, local=True)
    assert first.get_hparams() == second.get_hparams()
    assert 2 <= first.get_hparam("units") <= 99
    fit(make_model(first, first.get_hparam("units")), epochs=1)
    assert first.experiment.trials[0].hparams["units"] == first.get_hparam("units")
    assert first.distributed.get_rank() == 0
    assert first.distributed.get_size() == 1


@pytest.mark.long
def test_without_a_seed_one_is_drawn_and_kept() -> None:
    config = {"hyperparameters": {"rate": det.Double(0, 1)}}
    first, second = (det.experimental.keras.init(config, local=True) for _ in range(2))
    assert first.get_hparam("rate") != second.get_hparam("rate")
    fit(make_model(first), epochs=1)
    kept = first.experiment.config["reproducibility"]["experiment_seed"]
    again = det.experimental.keras.init({**config, "reproducibility": {"experiment_seed": kept}}, local=True)
    assert again.get_hparam("rate") == first.get_hparam("rate")


@pytest.mark.long
def test_what_has_no_effect_for_keras_is_named() -> None:
    context = det.experimental.keras.init({"optimizations": {"torch_compile": True}}, local=True)
    with pytest.warns(UserWarning, match=r"optimizations.torch_compile \(for Keras: "):
        fit(make_model(context), epochs=1)


@pytest.mark.long
@only_keras_2
def test_one_step_is_made_of_the_gradients_of_several_batches() -> None:
    context = det.experimental.keras.init({"optimizations": {"aggregation_frequency": 3}}, local=True)
    model = make_model(context)
    fit(model, epochs=2)  # 6 batches
    assert int(model.optimizer.iterations) == 2
    tf.keras.Model.fit(model, X, Y, batch_size=20, epochs=2, verbose=0)  # the optimizer is the user's own again
    assert int(model.optimizer.iterations) == 8


@pytest.mark.long
def test_a_configuration_that_speaks_wins_with_a_warning() -> None:
    config = {"searcher": {"name": "single", "metric": "val_mae", "max_length": {"epochs": 2}}}
    context = det.experimental.keras.init(config, local=True)
    with pytest.warns(UserWarning, match="searcher.max_length"):
        history = fit(make_model(context), validation_data=(X, Y), epochs=7)
    assert len(history.history["loss"]) == 2


@pytest.mark.long
@pytest.mark.parametrize("arguments", [{"mode": "local"}, {"local": True, "test": True}])
def test_minimal_loop(arguments: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    context = det.experimental.keras.init(None, **arguments)
    make_model(context).fit(X, Y, batch_size=20, validation_data=(X, Y), epochs=9)
    said = capsys.readouterr()
    assert ("local=True, test=True" in said.out) == ("mode" in arguments)
    assert "trained on one batch" in said.out
    assert "ETA" not in said.out + said.err  # Keras's bar would count the batches of the whole epoch
    assert "[=" not in said.out + said.err


def test_positional_boolean_is_local() -> None:
    assert det.experimental.keras.init(None, True).role == "local"
    assert det.experimental.keras.init(None, False).role == "cluster"


def test_what_is_wrong_is_said_at_init() -> None:
    with pytest.raises(ConfigurationError, match="sercher"):
        det.experimental.keras.init({"sercher": {}}, local=True)
    with pytest.raises(ArgumentError, match="context_dir"):
        det.experimental.keras.init(local=True, context_dir="no/such/folder")
    with pytest.raises(UnsupportedFeatureError, match="native_parallel"):
        det.experimental.keras.init({"resources": {"slots_per_trial": 4, "native_parallel": True}})


@pytest.mark.long
def test_context_directory_is_the_working_directory_until_fit_returns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "code").mkdir()
    seen = []

    class Where(tf.keras.callbacks.Callback):
        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            seen.append(Path.cwd())

    for _ in range(2):  # init() can be called again, with the same relative path
        context = det.experimental.keras.init(local=True, context_dir="code")
        assert Path.cwd() == tmp_path / "code"
    fit(make_model(context), epochs=1, callbacks=[Where()])
    assert seen == [tmp_path / "code"]
    assert Path.cwd() == tmp_path


@pytest.mark.long
def test_an_exception_leaves_the_kernel_usable(tmp_path: Path) -> None:
    class Broken(tf.keras.callbacks.Callback):
        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            raise ZeroDivisionError("here")

    before = Path.cwd()
    context = det.experimental.keras.init(local=True, context_dir=tmp_path)
    model = make_model(context)
    with pytest.raises(ZeroDivisionError, match="here") as raised:
        fit(model, epochs=1, callbacks=[Broken()])
    assert not [entry for entry in raised.traceback if "det_harness" in str(entry.path)]
    assert context.experiment.state is ExperimentState.ERROR
    assert Path.cwd() == before
    assert len(fit(model, epochs=1).history["loss"]) == 1


def test_what_fails_in_its_first_batch_is_recorded_nowhere() -> None:
    class Broken(tf.keras.callbacks.Callback):
        def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
            raise ZeroDivisionError("here")

    context = det.experimental.keras.init(local=True)
    with pytest.raises(ZeroDivisionError, match="here"):
        fit(make_model(context), epochs=1, callbacks=[Broken()])
    assert context.experiment.state is ExperimentState.ERROR
    with pytest.raises(NotRecordedError, match="before its first batch"):
        assert context.experiment.id


def test_ctrl_c_checkpoints_and_returns_the_history_so_far() -> None:
    class Interrupt(tf.keras.callbacks.Callback):
        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            if epoch == 1:
                os.kill(os.getpid(), signal.SIGINT)

    context = det.experimental.keras.init(local=True)
    history = fit(make_model(context), epochs=50, callbacks=[Interrupt()])
    assert 2 <= len(history.history["loss"]) <= 3
    experiment = context.experiment
    assert experiment.state is ExperimentState.CANCELED
    assert experiment.checkpoints
    assert len(experiment.history["loss"]) >= 2


@pytest.mark.long
@pytest.mark.parametrize("restores", [False, True])
def test_keras_loads_from_the_path_of_a_checkpoint_what_load_gives(restores: bool) -> None:
    context = det.experimental.keras.init(local=True)
    stop = tf.keras.callbacks.EarlyStopping(patience=1, restore_best_weights=True, start_from_epoch=1, baseline=0.0)
    model = make_model(context)
    fit(model, validation_data=(X, Y), epochs=5, callbacks=[stop] if restores else [])
    checkpoint = context.experiment.checkpoints[-1]
    loaded = tf.keras.models.load_model(checkpoint.path)
    expected = checkpoint.load()
    assert np.array_equal(loaded.predict(X, verbose=0), expected.predict(X, verbose=0))
    assert loaded.evaluate(X, Y, verbose=0) == expected.evaluate(X, Y, verbose=0)
    begun = checkpoint.path.stat().st_mtime_ns
    assert checkpoint.path.stat().st_mtime_ns == begun, "it is made once"


@pytest.mark.long
def test_the_number_of_the_last_checkpoint_is_that_of_the_best_weights_that_were_put_back() -> None:
    class Worse(tf.keras.callbacks.Callback):
        def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
            self.model.set_weights([weight + (1.0 if epoch else 0.0) for weight in self.model.get_weights()])

    tf.keras.utils.set_random_seed(5)  # other weights at the beginning may diverge
    context = det.experimental.keras.init(local=True)
    stop = tf.keras.callbacks.EarlyStopping(patience=2, restore_best_weights=True)
    model = make_model(context)
    history = fit(model, validation_data=(X, Y), epochs=6, callbacks=[Worse(), stop])
    last = context.experiment.checkpoints[-1]
    loss, error = last.load().evaluate(X, Y, verbose=0)
    assert last.metrics == pytest.approx({"val_loss": loss, "val_mae": error}, rel=1e-5)
    assert last.metrics["val_loss"] == pytest.approx(min(history.history["val_loss"]), rel=1e-5)
    assert context.experiment.metrics(kind="validation")[-1]["val_loss"] == history.history["val_loss"][-1]


class Own(tf.keras.Model):  # type: ignore[misc]
    """Has no configuration: Keras cannot write one into a file."""

    def __init__(self, layers: list[Any]) -> None:
        super().__init__()
        self.own = layers

    def call(self, x: Any) -> Any:
        for layer in self.own:
            x = layer(x)
        return x


@pytest.mark.long
@only_keras_2
def test_a_model_whose_class_cannot_be_made_from_a_file_has_a_path_too() -> None:
    context = det.experimental.keras.init(local=True)
    model = context.wrap_model(Own([tf.keras.layers.Dense(1)]))
    model.compile("sgd", "mse")
    fit(model, epochs=2)
    checkpoint = context.experiment.checkpoints[-1]
    loaded = tf.keras.models.load_model(checkpoint.path)
    assert np.allclose(loaded(X), checkpoint.load()(X))
