"""A call of ``train_and_evaluate()``: what it says about the configuration, exporters, listeners, when it evaluates."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import tensorflow as tf
from det_harness.frameworks.base import harness_for
from det_harness.frameworks.estimator import internals
from estimator_runs import BATCH_SIZE, RECORDS, Run, Small, X, Y

from det_native.errors import ArgumentError, TrialDefinitionError
from det_native.estimator import EstimatorNativeContext
from det_native.estimator.call import EstimatorCall
from det_native.schema.environment import TrialEnvironment
from det_native.schema.exports import read

pytestmark = [pytest.mark.slow, pytest.mark.long]


def receiver() -> Any:
    given = {"x": tf.compat.v1.placeholder(tf.float32, [None, 3])}
    return tf.estimator.export.ServingInputReceiver(given, given)


def call_of(
    environment: TrialEnvironment, data: Any = None, config: Any = None, evaluation: Any = None, **train: Any
) -> EstimatorCall:
    """Return a call, whose model is that of `Small`."""
    calls: list[EstimatorCall] = []
    context = EstimatorNativeContext(environment, on_call=calls.append)
    parts = Small(context)
    estimator = tf.estimator.Estimator(parts.model_fn, model_dir="estimator", config=config)
    input_fn = data or (lambda: parts.data().batch(BATCH_SIZE))
    context.train_and_evaluate(
        estimator,
        tf.estimator.TrainSpec(input_fn, **train),
        tf.estimator.EvalSpec(lambda: parts.data().batch(BATCH_SIZE), steps=None, **(evaluation or {})),
    )
    return calls[0]


class NativeRun(Run):
    """Runs of a call, which each makes anew."""

    def __init__(self, directory: Path, make: Any, batches: int = 3, **config: Any) -> None:
        super().__init__(None, directory, batches, **config)  # type: ignore[arg-type]
        self.make = make

    def run(self, stop_after: int | None = None) -> Any:
        self.trial_class = self.make(self.environment)
        return super().run(stop_after)


EMPTY = TrialEnvironment(config={}, hparams={})


def test_a_call_says_what_the_configuration_does_not() -> None:
    fills = call_of(EMPTY, max_steps=7).configuration_fills()
    assert fills["searcher.max_length"] == {"batches": 7}
    assert fills["searcher.metric"] == "loss"
    assert fills["hyperparameters.global_batch_size"] == BATCH_SIZE
    assert "searcher.max_length" not in call_of(EMPTY, max_steps=7).assumed
    config = tf.estimator.RunConfig(model_dir="estimator", save_checkpoints_steps=4)
    assert call_of(EMPTY, config=config).configuration_fills()["min_validation_period"] == {"batches": 4}


def test_without_a_length_training_ends_with_its_input() -> None:
    assert call_of(EMPTY).configuration_fills()["searcher.max_length"] == {"batches": RECORDS // BATCH_SIZE}

    def of_unknown_length() -> Any:
        return tf.data.Dataset.from_tensor_slices(({"x": X}, Y)).filter(lambda x, y: y < 2).batch(2)

    two = TrialEnvironment(config={"resources": {"slots_per_trial": 2}}, hparams={})
    fills = call_of(two).configuration_fills()  # each slot has a half of the data, in batches of this size
    assert fills["searcher.max_length"] == {"batches": RECORDS // BATCH_SIZE // 2}
    assert fills["hyperparameters.global_batch_size"] == 2 * BATCH_SIZE

    expected = -(-int((Y < 2).sum()) // 2)
    call = call_of(EMPTY, of_unknown_length)
    assert call.configuration_fills()["searcher.max_length"] == {"batches": expected}
    assert "searcher.max_length" in call.assumed
    endless = call_of(EMPTY, lambda: of_unknown_length().repeat())
    with pytest.raises(ArgumentError, match="data without end, and nothing says how long to train: set max_steps"):
        endless.configuration_fills()
    said = TrialEnvironment(config={"searcher": {"max_length": {"batches": 3}}}, hparams={"global_batch_size": 2})
    assert "searcher.max_length" not in call_of(said, lambda: of_unknown_length().repeat()).configuration_fills()
    assert tf.executing_eagerly()


def test_exports_lie_in_the_checkpoints_and_go_on(tmp_path: Path) -> None:
    exporters: list[Any] = []

    def make(environment: TrialEnvironment) -> EstimatorCall:
        smaller = lambda best_eval_result, current_eval_result: (  # noqa: E731
            current_eval_result["loss"] < best_eval_result["loss"]
        )
        exporters[:] = [
            tf.estimator.BestExporter("best", receiver, compare_fn=smaller, exports_to_keep=1),
            tf.estimator.LatestExporter("latest", receiver),
            tf.estimator.FinalExporter("final", receiver),
        ]
        return call_of(environment, evaluation={"exporters": exporters, "name": "test"})

    run = NativeRun(tmp_path, make, 4, min_validation_period={"batches": 1})
    run.run(stop_after=2)
    assert [each is None for each in json.loads((run.folder / "exports.json").read_text())] == [False, False, True]
    run.run()
    assert [row.batch for row in run.reporter.validation_rows] == [1, 2, 3, 4]
    made = json.loads((run.folder / "exports.json").read_text())
    assert [Path(each).parts[:2] for each in made] == [("export", "best"), ("export", "latest"), ("export", "final")]
    for each in made:
        assert tf.saved_model.load(str(run.folder / each)).signatures["serving_default"]
    losses = [metrics["loss"] for metrics in run.validations]
    assert internals.best_of(exporters[0])["loss"] == pytest.approx(min(losses))
    assert internals.best_of(exporters[1]) is None


class OwnExporter(tf.estimator.Exporter):  # type: ignore[misc]
    """Returns what it is told to at each evaluation."""

    def __init__(self, name: str, results: list[Any]) -> None:
        self._name, self._results = name, results

    @property
    def name(self) -> str:
        return self._name

    def export(
        self, estimator: Any, export_path: str, checkpoint_path: str, eval_result: Any, is_the_final_export: bool
    ) -> Any:
        made = self._results.pop(0)
        return made(Path(export_path)) if callable(made) else made


def written(path: Path) -> str:
    """Write a folder of an export; return its path as a text."""
    (path / "3").mkdir(parents=True)
    (path / "3" / "model.txt").write_text("x")
    return str(path / "3")


def test_own_exporters_give_what_they_have_returned(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    results = {
        "values": [1, {"loss": (1.5, b"x"), "texts": ["a", None]}],
        "elsewhere": ["/somewhere/else", "/somewhere/else"],
        "gone": ["first", None],
        "path": [None, written],
        "object": [object(), object()],
    }
    exporters = [OwnExporter(name, list(made)) for name, made in results.items()]
    run = NativeRun(
        tmp_path,
        lambda environment: call_of(environment, evaluation={"exporters": exporters}),
        2,
        min_validation_period={"batches": 1},
    )
    with caplog.at_level("WARNING", "det_native"):
        run.run()
    values, elsewhere, gone, path, other = read(run.folder, list(results))
    assert (values, elsewhere, gone, other) == (results["values"][1], "/somewhere/else", None, None)
    assert isinstance(path, str)
    assert Path(path, "model.txt").read_text() == "x"
    assert Path(path).is_relative_to(run.folder)
    [told] = [record.getMessage() for record in caplog.records if "exporter" in record.getMessage()]
    assert "The exporter 'object' has returned a object, which does not leave this process" in told


def test_a_context_ends_by_with_by_close_and_by_its_call() -> None:
    taken: list[Any] = []

    def begin() -> EstimatorNativeContext:
        context = EstimatorNativeContext(EMPTY, on_call=taken.append)
        context.take_next_call(lambda call: taken.append(call) or "unchanged")
        return context

    call = call_of(EMPTY, max_steps=1)
    given = (call.estimator, call.train_spec, call.eval_spec)
    begin()
    with pytest.raises(TypeError, match="was given None"):  # and may be made again
        tf.estimator.train_and_evaluate(call.estimator, call.train_spec, None)
    assert tf.estimator.train_and_evaluate(*given) == "unchanged"
    own = pytest.raises(TypeError, match="must have type")
    with own:
        tf.estimator.train_and_evaluate(call.estimator, call.train_spec, None)
    begin().train_and_evaluate(*given)
    with own:
        tf.estimator.train_and_evaluate(call.estimator, call.train_spec, None)
    assert [type(each).__name__ for each in taken] == ["UnchangedCall", "EstimatorCall"]
    with begin() as context:
        pass
    closed = begin()
    closed.close()
    with own:
        tf.estimator.train_and_evaluate(call.estimator, call.train_spec, None)
    for each in (context, closed):
        with pytest.raises(ArgumentError, match="The context is closed"):
            each.train_and_evaluate(*given)
    assert len(taken) == 2


def test_saving_listeners_are_told(tmp_path: Path) -> None:
    told: list[Any] = []

    class Listener(tf.estimator.CheckpointSaverListener):  # type: ignore[misc]
        def begin(self) -> None:
            told.append("begin")

        def before_save(self, session: Any, global_step_value: int) -> None:
            told.append(("before", global_step_value, int(session.run(tf.compat.v1.train.get_global_step()))))

        def after_save(self, session: Any, global_step_value: int) -> bool:
            told.append(("after", global_step_value))
            return global_step_value == 4  # asks for the end

        def end(self, session: Any, global_step_value: int) -> None:
            told.append(("end", global_step_value))

    def make(environment: TrialEnvironment) -> EstimatorCall:
        return call_of(environment, saving_listeners=[Listener()])

    outcome = NativeRun(tmp_path, make, 9, min_checkpoint_period={"batches": 2}).run()
    assert (outcome.batches, outcome.stopped) == (4, True)
    assert told == ["begin", ("before", 2, 2), ("after", 2), ("before", 4, 4), ("after", 4), ("end", 4)]


class Counting(tf.estimator.SessionRunHook):  # type: ignore[misc]
    """Notes the batches, and the end."""

    def __init__(self) -> None:
        self.batches: list[int] = []

    def after_run(self, run_context: Any, run_values: Any) -> None:
        self.batches.append(len(self.batches))

    def end(self, session: Any) -> None:
        self.ended = True


def test_what_hooks_change_goes_on_after_a_stop_and_comes_home(tmp_path: Path) -> None:
    calls: list[EstimatorCall] = []

    def make(environment: TrialEnvironment) -> EstimatorCall:
        calls.append(call_of(environment, hooks=[Counting()]))
        return calls[-1]

    run = NativeRun(tmp_path, make, 4)
    run.run(stop_after=2)
    run.run()
    notebook = make(EMPTY)
    harness_for(notebook).note_names(notebook)
    harness_for(notebook).load_into(notebook, run.folder)
    for call in calls[1:]:
        [hook] = call.train_spec.hooks
        assert hook.batches == [0, 1, 2, 3]
        assert hook.ended


@pytest.mark.parametrize(
    ("times", "expected"),
    [
        ({"start_delay_secs": 0, "throttle_secs": 0}, [1, 2, 3]),
        ({"start_delay_secs": 0, "throttle_secs": 600}, [1, 3]),
        ({"start_delay_secs": 600, "throttle_secs": 0}, [3]),
    ],
)
def test_evaluations_that_come_with_saves_are_as_seldom_as_the_spec_says(
    times: dict[str, Any], expected: list[int], tmp_path: Path
) -> None:
    config = tf.estimator.RunConfig(model_dir="estimator", save_checkpoints_steps=1)
    run = NativeRun(tmp_path, lambda environment: call_of(environment, config=config, evaluation=times))
    run.environment.config["min_validation_period"] = {"batches": 0}
    call = run.make(run.environment)
    assert call.evaluates_at_saves
    run.make = lambda environment: call
    filled = {**run.environment.config, "min_validation_period": {"batches": 1}}
    run.environment = TrialEnvironment(config=filled, hparams=run.environment.hparams, trial_seed=7)
    run.run()
    assert [row.batch for row in run.reporter.validation_rows] == expected


@pytest.mark.parametrize(
    ("times", "expected"),
    [
        ({"start_delay_secs": 0, "throttle_secs": 0}, [1, 2, 3]),
        ({"start_delay_secs": 0, "throttle_secs": 600}, [1, 3]),
        ({"start_delay_secs": 600, "throttle_secs": 0}, [3]),
    ],
)
def test_evaluations_come_with_saves_that_go_by_time(times: Any, expected: list[int], tmp_path: Path) -> None:
    config = tf.estimator.RunConfig(model_dir="estimator", save_checkpoints_secs=0.0001)
    run = NativeRun(tmp_path, lambda environment: call_of(environment, config=config, evaluation=times))
    assert run.make(run.environment).evaluates_every == 0.0001
    run.run()
    assert [row.batch for row in run.reporter.validation_rows] == expected
    run.environment.config["min_validation_period"] = {"batches": 2}
    assert run.make(run.environment).evaluates_every is None  # the configuration says more


@pytest.mark.parametrize(
    ("position", "told"),
    [
        (0, "was given None; give a tf.estimator.Estimator"),
        (1, "was given None; give a tf.estimator.TrainSpec"),
        (2, "was given None; give a tf.estimator.EvalSpec"),
    ],
)
def test_wrong_arguments_are_told(position: int, told: str) -> None:
    call = call_of(EMPTY)
    arguments: list[Any] = [call.estimator, call.train_spec, call.eval_spec]
    arguments[position] = None
    with pytest.raises(TrialDefinitionError, match=told):
        EstimatorNativeContext(EMPTY, on_call=print).train_and_evaluate(*arguments)
