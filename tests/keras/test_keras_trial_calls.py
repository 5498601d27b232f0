"""How a TFKerasTrial is made: by what context, by which name, in a run, from a directory, and outside any run."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
import yaml

import det_native as det
from det_native.errors import ArgumentError, TrialDefinitionError
from det_native.keras import TFKerasTrial, TFKerasTrialContext

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("recorded")]

CONFIG: dict[str, Any] = {
    "hyperparameters": {"global_batch_size": 8, "units": 4},
    "searcher": {"name": "single", "metric": "val_loss", "max_length": {"epochs": 2}},
    "records_per_epoch": 40,
    "min_validation_period": {"epochs": 1},
    "reproducibility": {"experiment_seed": 5},
}
SHORT = {**CONFIG, "searcher": {**CONFIG["searcher"], "max_length": {"batches": 1}}}


@pytest.fixture(autouse=True)
def home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """A home of the test's own, and no layer names of earlier models."""
    monkeypatch.setenv("DET_HOME", str(tmp_path_factory.mktemp("home")))
    tf.keras.backend.clear_session()


@pytest.fixture(autouse=True)
def eager() -> Any:
    """Whatever a test does, this process stays eager."""
    yield
    assert tf.executing_eagerly()


class Small(TFKerasTrial):
    """A small model on arrays, in a class as the documents have it."""

    def __init__(self, trial_context: TFKerasTrialContext) -> None:
        self.context = trial_context

    def build_model(self) -> Any:
        layers = [tf.keras.Input((6,)), tf.keras.layers.Dense(self.context.get_hparam("units"), "relu")]
        model = self.context.wrap_model(tf.keras.Sequential([*layers, tf.keras.layers.Dense(3)]))
        model.compile("adam", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
        return model

    def build_training_data_loader(self) -> Any:
        x = np.random.default_rng(1).normal(size=(40, 6)).astype("float32")
        return x, x[:, :3].argmax(1)

    def build_validation_data_loader(self) -> Any:
        return self.build_training_data_loader()


class Switching(Small):
    """Asks for graph mode where the documents say, and in a method too."""

    def __init__(self, trial_context: TFKerasTrialContext) -> None:
        tf.compat.v1.disable_eager_execution()
        super().__init__(trial_context)

    def build_model(self) -> Any:
        tf.compat.v1.disable_v2_behavior()
        return super().build_model()


class ByTrialContext(Small):
    def __init__(self, trial_context: TFKerasTrialContext) -> None:
        TFKerasTrial.__init__(self, trial_context=trial_context)


class ByContext(Small):
    def __init__(self, context: TFKerasTrialContext) -> None:
        TFKerasTrial.__init__(self, context=context)


class Inheriting(Small):
    __init__ = TFKerasTrial.__init__  # type: ignore[assignment]


@pytest.mark.parametrize("trial_class", [ByTrialContext, ByContext, Inheriting])
def test_the_constructor_takes_the_context_by_both_names(trial_class: type[TFKerasTrial]) -> None:
    experiment = det.experimental.create(trial_class, SHORT, local=True)
    assert str(experiment.state) == "Completed"
    assert [*inspect.signature(ByContext).parameters] == ["context"]
    assert [*inspect.signature(TFKerasTrial).parameters] == ["trial_context", "context"]


@pytest.mark.parametrize(("given", "count"), [((), 0), (("trial_context", "context"), 2)])
def test_no_context_and_two_are_told(given: tuple[str, ...], count: int) -> None:
    contexts = {name: TFKerasTrialContext.from_config(CONFIG) for name in given}
    with pytest.raises(ArgumentError, match=f"Inheriting: .*as trial_context or as context; {count} were given"):
        Inheriting(**contexts)  # type: ignore[arg-type]


def test_the_context_is_of_the_trials_own_class() -> None:
    class Mine(TFKerasTrialContext):
        def units(self) -> int:
            return 2 * int(self.get_hparam("units"))

    class Trial(Small):
        trial_context_class = Mine

        def build_model(self) -> Any:
            assert isinstance(self.context, Mine)
            model = self.context.wrap_model(tf.keras.Sequential([tf.keras.layers.Dense(self.context.units())]))
            model.compile("sgd", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
            return model

    assert Small.trial_context_class is TFKerasTrialContext
    experiment = det.experimental.create(Trial, SHORT, local=True)
    assert experiment.top_checkpoint().load().layers[0].units == 8
    assert isinstance(Trial(Trial.trial_context_class.from_config(CONFIG)).context, Mine)


@pytest.mark.parametrize("made", [det.TrialContext, TFKerasTrialContext.from_config, None])
def test_a_context_of_another_kind_is_told(made: Any) -> None:
    wrong = type("Wrong", (Small,), {"trial_context_class": made})
    with pytest.raises(TrialDefinitionError, match=r"Wrong\.trial_context_class is .*; set it to a subclass of det"):
        det.experimental.create(wrong, CONFIG, local=True)


@pytest.fixture
def settings_of_tensorflow() -> Any:
    """Put back what a test sets in the whole process."""
    soft, logged = tf.config.get_soft_device_placement(), tf.debugging.get_log_device_placement()
    yield
    tf.config.set_soft_device_placement(soft)
    tf.debugging.set_log_device_placement(logged)


@pytest.mark.long
@pytest.mark.usefixtures("settings_of_tensorflow")
@pytest.mark.parametrize("soft", [True, False])
def test_session_config_is_given_to_eager_tensorflow(soft: bool, caplog: pytest.LogCaptureFixture) -> None:
    tf.zeros(1)  # TensorFlow has begun
    threads = tf.config.threading.get_intra_op_parallelism_threads()
    seen = []

    class Trial(Small):
        def session_config(self) -> Any:
            config = tf.compat.v1.ConfigProto(allow_soft_placement=soft, operation_timeout_in_ms=9)
            config.gpu_options.allow_growth = True
            config.gpu_options.per_process_gpu_memory_fraction = 0.5
            config.intra_op_parallelism_threads = threads + 1
            return config

        def build_model(self) -> Any:
            seen.append(tf.config.get_soft_device_placement())
            return super().build_model()

    experiment = det.experimental.create(Trial, SHORT, local=True)
    assert str(experiment.state) == "Completed"
    assert seen == [soft]
    (said,) = [record.getMessage() for record in caplog.records if "session_config" in record.getMessage()]
    assert said == (
        "Trial.session_config(): intra_op_parallelism_threads (TensorFlow has begun already in this process), "
        "gpu_options.per_process_gpu_memory_fraction, operation_timeout_in_ms without effect, as the trial runs "
        "eagerly."
    )


def test_one_batch_is_trained_validated_and_saved(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.warns(DeprecationWarning, match=r"create\(trial_class, config, local=True, test=True\)"):
        det.experimental.test_one_batch(trial_class=Small, config=CONFIG)
    said = capsys.readouterr().out
    assert [said.count(part) for part in ("trained on one batch", "validated:", "saved a checkpoint")] == [1, 1, 1]
    assert "The quick check passed." in said


def made_by_call(trial_class: type[TFKerasTrial]) -> Any:
    with pytest.warns(DeprecationWarning, match="from_config"):
        return det.experimental.create_trial_instance(trial_class, "", CONFIG, {"global_batch_size": 8, "units": 5})


def made_by_config(trial_class: type[TFKerasTrial]) -> Any:
    config = {**CONFIG, "hyperparameters": {"global_batch_size": 8, "units": 5}}
    return trial_class(trial_class.trial_context_class.from_config(config))


@pytest.mark.long
@pytest.mark.parametrize("make", [made_by_call, made_by_config])
def test_an_instance_outside_any_run_trains_in_plain_keras(make: Any) -> None:
    trial = make(Small)
    assert isinstance(trial, Small)
    model = trial.build_model()
    assert model.layers[0].units == 5
    losses = model.fit(*trial.build_training_data_loader(), epochs=20, verbose=0).history["loss"]
    assert losses[-1] < losses[0]
    assert trial.keras_callbacks() == []
    assert trial.session_config().allow_soft_placement


@pytest.mark.long
@pytest.mark.parametrize("make", [made_by_call, made_by_config])
def test_an_instance_is_eager_whatever_its_class_switches(make: Any, caplog: pytest.LogCaptureFixture) -> None:
    trial = make(Switching)
    said = "Switching: tf.compat.v1.disable_eager_execution() is passed over, the model is built eagerly."
    assert said in caplog.text
    assert "disable_v2_behavior" not in caplog.text
    model = trial.build_model()
    assert "Switching: tf.compat.v1.disable_v2_behavior() is passed over" in caplog.text
    x, y = trial.build_training_data_loader()
    assert model(x).numpy().shape == (40, 3)
    assert model.fit(x, y, verbose=0).history["loss"]


def test_an_instance_of_an_unfinished_class_is_told() -> None:
    class Empty(TFKerasTrial):
        pass

    with pytest.raises(TrialDefinitionError, match=r"Empty lacks build_model\(\)"):
        made_by_call(Empty)


@pytest.mark.long
def test_a_class_of_a_directory_is_trained_by_its_name_and_by_the_entrypoint(tmp_path: Path) -> None:
    (tmp_path / "keras_definition.py").write_text(
        "from pathlib import Path\n"
        "from test_keras_trial_calls import Small\n"
        "class Named(Small):\n"
        "    def build_training_data_loader(self):\n"
        "        assert Path('keras_definition.py').exists()\n"
        "        return super().build_training_data_loader()\n"
    )
    (tmp_path / "const.yaml").write_text(
        yaml.safe_dump({**CONFIG, "entrypoint": "keras_definition:Named", "name": "named"})
    )
    before = Path.cwd()
    named = det.experimental.create("keras_definition:Named", CONFIG, local=True, context_dir=tmp_path)
    by_entrypoint = det.experimental.create(config=tmp_path / "const.yaml", local=True, context_dir=tmp_path)
    assert Path.cwd() == before
    assert named.history["val_loss"] == by_entrypoint.history["val_loss"]
    assert len(named.history["val_loss"]) == 2
    assert by_entrypoint.top_checkpoint().load().layers[0].units == 4
    with pytest.raises(ArgumentError, match="no 'Nope'"):
        det.experimental.create("keras_definition:Nope", CONFIG, local=True, context_dir=tmp_path)
