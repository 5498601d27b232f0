"""Callbacks in a training of ours: called as plain Keras calls them, and with more hooks."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tensorflow as tf
from callback_runs import EPOCHS, STEPS, Run, Trainings, X, Y, equal, plain

import det_native as det
from det_native.errors import TrialDefinitionError

pytestmark = pytest.mark.slow

WAYS = ("trial", pytest.param("native", marks=pytest.mark.soak))
_HOOKS = [name for name in dir(tf.keras.callbacks.Callback) if name.startswith("on_") and name not in dir(object)]


def noting(calls: list[Any], base: type = tf.keras.callbacks.Callback) -> Any:
    """Return a callback that notes every call of every hook of Keras's, with its logs."""

    def note(name: str) -> Callable[..., None]:
        def hook(self: Any, *arguments: Any, **named: Any) -> None:
            *numbers, logs = [*arguments, *named.values()] or [None]
            calls.append((name, *numbers, {key: float(value) for key, value in (logs or {}).items()}))

        return hook

    return type("Noting", (base,), {name: note(name) for name in _HOOKS})()


def of_keras(calls: list[Any]) -> list[Any]:
    """Return Keras's own callbacks, and one that notes all calls."""
    callbacks = tf.keras.callbacks
    return [
        callbacks.EarlyStopping("val_loss", min_delta=0.4, patience=1, restore_best_weights=True),
        callbacks.ReduceLROnPlateau("val_loss", min_delta=9.0, patience=1, factor=0.5),
        callbacks.ModelCheckpoint("best.keras", save_best_only=True),
        callbacks.ModelCheckpoint("{epoch}.weights.h5", save_weights_only=True),
        callbacks.CSVLogger("log.csv"),
        callbacks.TensorBoard("events"),
        callbacks.LambdaCallback(on_epoch_end=lambda epoch, logs: calls.append(("lambda", epoch, sorted(logs)))),
        noting(calls),
    ]


def names(folder: Path) -> set[str]:
    """Return the names of the files in a folder, the event files' without their times and numbers of processes."""
    paths = [path.relative_to(folder) for path in folder.rglob("*") if path.is_file()]
    return {str(path.parent / path.name.split(".tfevents")[0]) for path in paths}


@pytest.mark.parametrize("way", WAYS)
def test_keras_calls_and_logs_are_those_of_plain_keras(way: str, tmp_path: Path) -> None:
    expected: list[Any] = []
    model = plain(tmp_path / "plain", lambda: of_keras(expected))
    calls: list[Any] = []
    run = getattr(Trainings(tmp_path / "ours"), way)(lambda: of_keras(calls))
    assert calls == expected
    assert len([call for call in calls if call[0] == "on_epoch_end"]) < EPOCHS  # it has stopped early
    assert run.schedule.progress.ended
    assert equal(run.model, model)
    assert names(run.work) == names(tmp_path / "plain")
    assert points(run.work / "events") == points(tmp_path / "plain/events")
    assert (run.work / "log.csv").read_text() == (tmp_path / "plain/log.csv").read_text()


def test_a_validation_that_is_due_at_an_epochs_end_is_in_its_logs(tmp_path: Path) -> None:
    calls: list[Any] = []
    training = Trainings(tmp_path, min_validation_period={"batches": 2 * STEPS + 1})
    run = training.trial(lambda: [noting(calls)])
    logs = [("val_loss" in call[2]) for call in calls if call[0] == "on_epoch_end"]
    # Amid the third epoch one is due, and at the end of the training.
    assert logs == [False, False, False, True]
    assert [batch for batch, _ in run.reports.validations] == [2 * STEPS + 1, 4 * STEPS]


class Added(det.keras.callbacks.Callback):
    """Notes the added hooks, and puts a file into checkpoints."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[Any] = []

    def on_train_begin(self, logs: Any = None) -> None:
        self.calls = [("begin",)]

    def on_train_workload_begin(self, total_batches_trained: int, batches_requested: int | None, logs: Any) -> None:
        self.calls.append(("workload begins", total_batches_trained, batches_requested, logs))

    def on_train_workload_end(self, total_batches_trained: int, logs: Any) -> None:
        self.calls.append(("workload ends", total_batches_trained, sorted(logs)))

    def on_test_end(self, logs: Any = None) -> None:
        self.calls.append(("test", sorted(logs)))

    def on_checkpoint_end(self, checkpoint_dir: str) -> None:
        self.calls.append(("checkpoint",))
        (Path(checkpoint_dir) / "words.txt").write_text("of the user")

    def on_train_end(self, logs: Any = None) -> None:
        self.calls.append(("end",))

    def get_state(self) -> Any:
        return {"calls": list(self.calls)}

    def load_state(self, state: Any) -> None:
        assert self.calls == [("begin",)]
        self.calls = state["calls"]


@pytest.mark.parametrize("way", WAYS)
def test_added_hooks_come_with_workloads_and_checkpoints(way: str, tmp_path: Path) -> None:
    training = Trainings(
        tmp_path, searcher={"max_length": {"batches": 8}, "metric": "val_loss"}, min_checkpoint_period={"batches": 3}
    )
    run: Run = getattr(training, way)(lambda: [Added()])
    metrics = ["accuracy", "loss"]
    test = ("test", ["val_accuracy", "val_loss"])
    expected = [
        ("begin",),
        ("workload begins", 0, 3, {}),
        ("workload ends", 3, metrics),
        ("checkpoint",),
        ("workload begins", 3, 2, {}),
        test,  # at the end of the epoch, where Keras validates
        ("workload ends", 5, metrics),
        ("workload begins", 5, 1, {}),
        ("workload ends", 6, metrics),
        ("checkpoint",),
        ("workload begins", 6, 2, {}),
        test,
        ("workload ends", 8, metrics),
        ("checkpoint",),
        ("end",),
    ]
    assert run.callbacks[0].calls == expected
    for saved in run.reports.checkpoints:
        assert "words.txt" in [file.path for file in saved.files]
    resumed: Run = getattr(training, way)(lambda: [Added()], resume=run.saved_at(3))
    # Its state was asked for before the checkpoint was written.
    assert resumed.callbacks[0].calls == [*expected[:3], *expected[4:]]


def test_a_workload_is_a_scheduling_unit_whatever_epochs_end_within_it(tmp_path: Path) -> None:
    training = Trainings(tmp_path, scheduling_unit=2 * STEPS - 2, min_validation_period={})
    run = training.trial(lambda: [Added()])
    begins = [call[1:3] for call in run.callbacks[0].calls if call[0] == "workload begins"]
    ends = [call[1] for call in run.callbacks[0].calls if call[0] == "workload ends"]
    unit, whole = 2 * STEPS - 2, EPOCHS * STEPS
    expected = list(range(0, whole, unit))
    assert begins == [(first, min(unit, whole - first)) for first in expected]
    assert ends == [*expected[1:], whole]


def test_a_state_that_cannot_be_kept_is_told_by_name(tmp_path: Path) -> None:
    class Owning(det.keras.callbacks.Callback):
        def get_state(self) -> Any:
            return {"rows": [0, 1, 2], "open": (number for number in range(3))}

    with pytest.raises(TrialDefinitionError, match=r"What .*Owning\.get_state\(\) returns is a generator"):
        Trainings(tmp_path).native(lambda: [Owning()])


@pytest.mark.parametrize(
    "kind",
    [
        det.keras.callbacks.EarlyStopping,
        pytest.param(det.keras.callbacks.ReduceLROnPlateau, marks=pytest.mark.soak),
    ],
)
def test_determined_s_own_count_validations(kind: Any, tmp_path: Path) -> None:
    training = Trainings(tmp_path, min_validation_period={"batches": 2})
    run = training.trial(lambda: [kind("val_loss", patience=2, min_delta=100.0)])
    callback = run.callbacks[0]
    if kind is det.keras.callbacks.EarlyStopping:
        assert [batch for batch, _ in run.reports.validations] == [2, 4, 6]
        assert run.schedule.progress.ended
        assert run.outcome.batches == 6
        assert not run.outcome.stopped
    else:
        assert float(run.model.optimizer.learning_rate) == pytest.approx(0.05 * 0.1**4)
    assert callback.validations == len(run.reports.validations)


def test_determined_s_tensorboard_writes_to_the_trials_folder(tmp_path: Path) -> None:
    assert det.keras.TFKerasTensorBoard is det.keras.callbacks.TensorBoard
    training = Trainings(tmp_path, min_checkpoint_period={"batches": 7})
    run = training.trial(lambda: [det.keras.TFKerasTensorBoard(log_dir="ignored")])
    assert names(tmp_path / "tensorboard") == {"train/events.out", "validation/events.out"}
    assert names(run.work) == set()
    whole = points(tmp_path / "tensorboard")
    assert whole["train", "epoch_loss"] == whole["validation", "epoch_loss"] == list(range(EPOCHS))
    # What the first run wrote after the checkpoint is not there twice.
    training.trial(lambda: [det.keras.TFKerasTensorBoard()], resume=run.saved_at(7))
    resumed = points(tmp_path / "tensorboard")
    assert {**resumed, ("train", "keras"): [0]} == whole  # each process writes the graph


def points(folder: Path) -> dict[tuple[str, str], list[int]]:
    """Return the steps of all curves in the event files of a folder."""
    found: dict[tuple[str, str], list[int]] = {}
    for path in sorted(folder.rglob("*tfevents*")):
        for event in tf.compat.v1.train.summary_iterator(str(path)):
            for value in event.summary.value:
                found.setdefault((path.parent.name, value.tag), []).append(event.step)
    return found


def stop_in(hook: str, number: int) -> Any:
    """Return a callback that sets ``stop_training`` in the n-th call of a hook."""
    calls: list[Any] = []

    def stop(self: Any, *arguments: Any, **named: Any) -> None:
        calls.append(arguments)
        if len(calls) == number:
            self.model.stop_training = True

    return type("Stop", (tf.keras.callbacks.Callback,), {hook: stop})()


@pytest.mark.parametrize(
    ("hook", "number", "batches"),
    [
        ("on_epoch_end", 2, 10),
        pytest.param("on_train_batch_end", 7, 7, marks=pytest.mark.soak),
        pytest.param("on_test_end", 2, 10, marks=pytest.mark.soak),
    ],
)
def test_stop_training_ends_the_trial_cleanly(hook: str, number: int, batches: int, tmp_path: Path) -> None:
    expected: list[Any] = []
    plain(tmp_path / "plain", lambda: [stop_in(hook, number), noting(expected)])
    calls: list[Any] = []
    training = Trainings(tmp_path)
    run = training.native(lambda: [stop_in(hook, number), noting(calls)])
    assert calls == expected
    assert (run.outcome.batches, run.outcome.stopped) == (batches, False)
    assert [batch for batch, _ in run.reports.validations][-1] == batches
    assert [batch for batch, _ in run.reports.validations].count(batches) == 1
    assert [one.batch for one in run.reports.checkpoints] == [batches, batches], "the second knows of on_train_end"
    # The end is kept: who continues from the last checkpoint trains no more.
    again = training.native(lambda: [noting(calls)], resume=run.reports.checkpoints[-1])
    assert again.outcome.batches == batches
    assert again.reports.rows == {}


@pytest.mark.soak
def test_a_validation_amid_an_epoch_may_end_the_training(tmp_path: Path) -> None:
    training = Trainings(tmp_path, min_validation_period={"batches": 3})
    run = training.trial(lambda: [stop_in("on_test_end", 2)])
    assert run.outcome.batches == 6
    assert [batch for batch, _ in run.reports.validations] == [3, 6]


@pytest.mark.soak
@pytest.mark.parametrize("policy", ["none", pytest.param("all", marks=pytest.mark.soak)])
def test_a_stop_at_an_epochs_end_validates_that_epoch_once(policy: str, tmp_path: Path) -> None:
    undisturbed: list[Any] = []
    Trainings(tmp_path / "undisturbed").native(lambda: [noting(undisturbed)])
    calls: list[Any] = []
    ended: list[Any] = []
    stop_at = tf.keras.callbacks.LambdaCallback(on_batch_end=lambda batch, logs: ended.append(batch))
    training = Trainings(tmp_path / "stopped", checkpoint_policy=policy)
    stopped = training.native(lambda: [noting(calls), stop_at], stop=lambda: len(ended) >= 2 * STEPS)
    assert (stopped.outcome.batches, stopped.outcome.stopped) == (2 * STEPS, True)
    assert [batch for batch, _ in stopped.reports.validations] == [STEPS, 2 * STEPS]
    resumed = training.native(lambda: [noting(calls)], resume=stopped.saved_at(2 * STEPS))
    assert [batch for batch, _ in resumed.reports.validations] == [3 * STEPS, 4 * STEPS]
    again = [call for call in calls if call[0] not in ("on_train_begin", "on_train_end")]
    assert again == [call for call in undisturbed if call[0] not in ("on_train_begin", "on_train_end")]


class Looking(tf.keras.callbacks.Callback):
    """Uses the model in its hooks."""

    def __init__(self) -> None:
        super().__init__()
        self.losses: list[float] = []

    def look(self) -> None:
        self.model.predict(X[:10], verbose=0)
        rows = tf.data.Dataset.from_tensor_slices((X, Y)).shuffle(40).batch(20)
        self.model.predict(rows, verbose=0)
        self.losses.append(self.model.evaluate(X[20:], Y[20:], verbose=0)[0])

    def on_train_begin(self, logs: Any = None) -> None:
        self.look()

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        if batch % 2:
            self.look()

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        self.look()

    def on_test_end(self, logs: Any = None) -> None:
        self.look()


@pytest.mark.soak
@pytest.mark.parametrize("way", WAYS)
def test_predict_and_evaluate_in_a_callback_disturb_nothing(way: str, tmp_path: Path) -> None:
    undisturbed: list[Any] = []
    training = Trainings(tmp_path, rate=0.3, min_checkpoint_period={"batches": 3})
    expected: Run = getattr(training, way)(lambda: [noting(undisturbed)])
    calls: list[Any] = []
    looked: Run = getattr(training, way)(lambda: [Looking(), noting(calls)])
    assert calls == undisturbed
    assert looked.reports.rows == expected.reports.rows
    assert looked.reports.validations == expected.reports.validations
    assert equal(looked.model, expected.model)
    assert len(set(looked.callbacks[0].losses)) > EPOCHS
    resumed: Run = getattr(training, way)(lambda: [Looking(), noting([])], resume=looked.saved_at(9))
    assert equal(resumed.model, expected.model)
    assert "evaluate" not in vars(resumed.model)


RAISING: dict[str, Any] = {
    "on_train_batch_end": tf.keras.callbacks.Callback,
    "on_test_batch_begin": tf.keras.callbacks.Callback,
    "on_test_end": det.keras.callbacks.Callback,
    "on_train_workload_begin": det.keras.callbacks.Callback,
    "on_checkpoint_end": det.keras.callbacks.Callback,
    "on_train_end": tf.keras.callbacks.Callback,
}


_OF_MAKE_TEST = "on_checkpoint_end"


@pytest.mark.parametrize(
    "hook", [hook if hook == _OF_MAKE_TEST else pytest.param(hook, marks=pytest.mark.soak) for hook in RAISING]
)
def test_an_exception_tells_the_callback_and_the_hook(hook: str, tmp_path: Path) -> None:
    def broken(self: Any, *arguments: Any, **named: Any) -> None:
        raise ZeroDivisionError("of the user")

    kind = type("Broken", (RAISING[hook],), {hook: broken})
    with pytest.raises(ZeroDivisionError, match="of the user") as raised:
        Trainings(tmp_path).native(lambda: [noting([]), kind()])
    assert raised.value.__notes__ == [f"This was raised in Broken.{hook}(), a callback of the training."]
    assert raised.traceback[-1].name == "broken"


def test_an_exception_of_a_function_in_a_lambda_callback_tells_it_too(tmp_path: Path) -> None:
    def divide(epoch: int, logs: Any) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError) as raised:
        Trainings(tmp_path).native(lambda: [tf.keras.callbacks.LambdaCallback(on_epoch_end=divide)])
    assert raised.value.__notes__ == ["This was raised in LambdaCallback.on_epoch_end(), a callback of the training."]
