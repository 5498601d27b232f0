"""The user's own loop over ``context.train()`` in this process."""

import gc
import math
import signal
from typing import Any

import pytest

torch = pytest.importorskip("torch")


from det_harness.frameworks.torch.training_means import MeansKeeper  # noqa: E402
from native_line import CONFIG, Line, loader_of, torch_generator, torch_is_warm  # noqa: E402, F401 (autouse)

import det_native as det  # noqa: E402 (after the check for torch)
from det_native.errors import (  # noqa: E402
    DivergedError,
    TrialDefinitionError,
)
from det_native.pytorch import LRScheduler  # noqa: E402
from det_native.schema.states import ExperimentState  # noqa: E402

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("recorded")]


def test_a_loop_is_the_same_as_fit() -> None:
    fitted, looped = Line(), Line()
    before = torch.get_rng_state()
    fitted.fit(loader_of(shuffle=True))
    torch.set_rng_state(before)
    for batch in looped.loop(loader_of(shuffle=True)):
        assert looped.model.training
        looped.context.report({"loss": looped.step(batch)})
    assert torch.equal(fitted.model.weight, looped.model.weight)
    here, there = fitted.context.experiment, looped.context.experiment
    for kind in ("training", "validation"):
        assert here.trials[0].metrics(kind) == there.trials[0].metrics(kind)
    assert there.state is ExperimentState.COMPLETED
    assert torch.equal(there.top_checkpoint().load().weight, here.top_checkpoint().load().weight)


def test_the_loop_knows_its_batch_and_epoch_and_steps_schedulers() -> None:
    line = Line()
    scheduler = torch.optim.lr_scheduler.ExponentialLR(line.optimizer, 0.5)
    line.context.wrap_lr_scheduler(scheduler, LRScheduler.StepMode.STEP_EVERY_EPOCH)
    seen = []
    for batch in line.loop():
        line.step(batch)
        seen.append((line.context.epoch_idx, line.context.batch_idx, scheduler.get_last_lr()[0]))
    assert seen == [(0, 0, 0.05), (0, 1, 0.05), (0, 2, 0.05), (1, 3, 0.025), (1, 4, 0.025), (1, 5, 0.025)]


def test_reports_are_of_their_batch_and_may_be_left_out() -> None:
    line = Line()
    for batch in line.loop():
        loss = line.step(batch)
        if line.context.batch_idx % 2 == 0:
            line.context.report(loss=loss)
            line.context.report(half=1)
    assert [(row["batch"], row["half"]) for row in line.context.experiment.trials[0].metrics()] == [
        (1, 1),
        (3, 1),
        (5, 1),
    ]


def leave_by_break(line: Line) -> None:
    for batch in line.loop():
        line.context.report(loss=line.step(batch))
        if line.context.batch_idx == 3:
            break


def leave_by_return(line: Line) -> None:
    for batch in line.loop():
        line.context.report(loss=line.step(batch))
        if line.context.batch_idx == 3:
            return


def leave_through_enumerate(line: Line) -> None:
    for number, batch in enumerate(line.loop()):
        line.context.report(loss=line.step(batch))
        if number == 3:
            break


def leave_through_a_generator(line: Line) -> None:
    for batch in (batch for batch in line.loop()):
        line.context.report(loss=line.step(batch))
        if line.context.batch_idx == 3:
            break


def leave_what_has_a_name(line: Line) -> None:
    batches = line.loop()
    for batch in batches:
        line.context.report(loss=line.step(batch))
        if line.context.batch_idx == 3:
            return


WAYS_OUT = [
    leave_by_break,
    leave_by_return,
    leave_through_enumerate,
    leave_through_a_generator,
    leave_what_has_a_name,
]


@pytest.mark.long
@pytest.mark.parametrize("leave", WAYS_OUT, ids=lambda leave: leave.__name__)
def test_leaving_the_loop_ends_the_training_there(leave: Any) -> None:
    line = Line()
    handler = signal.getsignal(signal.SIGINT)
    leave(line)
    gc.collect()  # a loop by another name ends with its function, when that is collected
    experiment = line.context.experiment
    assert experiment.state is ExperimentState.COMPLETED
    assert [row["batch"] for row in experiment.trials[0].metrics()] == [1, 2, 3, 4]
    assert experiment.trials[0].checkpoints[-1].batch == 4
    assert torch.equal(experiment.trials[0].checkpoints[-1].load().weight, line.model.weight)
    assert signal.getsignal(signal.SIGINT) is handler


def test_an_exception_in_the_loop_ends_it_as_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    line = Line()
    handler = signal.getsignal(signal.SIGINT)

    def train() -> None:
        for batch in line.loop():
            line.context.report(loss=line.step(batch))
            if line.context.batch_idx == 3:
                raise KeyError("three")

    with pytest.raises(KeyError, match="three"):
        train()
    assert signal.getsignal(signal.SIGINT) is handler
    assert "det.last_experiment() has it" in capsys.readouterr().out
    kept = det.last_experiment()
    assert kept.state is ExperimentState.ERROR
    assert [row["batch"] for row in kept.trials[0].metrics()] == [1, 2, 3]
    assert "An exception in the body of the loop" in str(kept.detail().error)
    with pytest.raises(TrialDefinitionError, match="for the body of"):
        line.context.report(loss=1.0)


def fail_at_an_item(line: Line) -> None:
    losses = [0.0, 0.0]
    for batch in line.loop():
        losses[line.context.batch_idx] = line.step(batch).item()


def fail_at_a_key(line: Line) -> None:
    left = {0: "first", 1: "second"}
    for batch in line.loop():
        line.step(batch)
        del left[line.context.batch_idx]


def fail_at_an_attribute(line: Line) -> None:
    for batch in line.loop():
        line.step(batch)
        if line.context.batch_idx == 2:
            line.model.weight = 3


@pytest.mark.parametrize(
    ("fail", "error"),
    [(fail_at_an_item, IndexError), (fail_at_a_key, KeyError), (fail_at_an_attribute, TypeError)],
    ids=lambda given: given.__name__,
)
def test_an_assignment_that_fails_is_no_break(fail: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        fail(Line())
    assert det.last_experiment().state is ExperimentState.ERROR


def test_a_loop_that_reports_nothing_and_validates_nothing_is_told_what_to_do() -> None:
    line = Line()

    def train() -> None:
        for batch in line.context.train(loader_of(), epochs=2):
            line.step(batch)

    with pytest.raises(TrialDefinitionError, match=r"To fix it, call context\.report\(loss=\.\.\.\) in the loop"):
        train()


def test_means_stay_where_nothing_is_reported_and_leave_out_what_is_no_number() -> None:
    line = Line()
    for batch in line.context.train(loader_of(), epochs=2):
        line.step(batch)
        if line.context.batch_idx == 0:
            line.context.report(loss=3.0, norm=float("nan"))
        if line.context.batch_idx == 1:
            line.context.report(loss=1.0, norm=7.0)
    rows = line.context.experiment.trials[0].metrics("validation")
    assert rows == [{"batch": 3, "loss": 2.0, "norm": 7.0}, {"batch": 6, "loss": 2.0, "norm": 7.0}]


def test_stopping_from_inside_the_loop() -> None:
    line = Line()
    for batch in line.loop():
        line.step(batch)
        line.context.set_stop_requested(line.context.batch_idx == 1)
    assert line.context.experiment.trials[0].checkpoints[-1].batch == 2
    assert line.context.experiment.state is ExperimentState.COMPLETED


def test_a_loop_in_one_over_epochs_goes_on_with_the_model() -> None:
    line, whole = Line(), Line()
    rows = []
    for _ in range(2):
        for batch in line.loop(epochs=1):
            line.context.report(loss=line.step(batch))
        rows.append(line.context.experiment.history["val_loss"])
    for batch in whole.loop(epochs=2):
        whole.context.report(loss=whole.step(batch))
    assert rows[0] + rows[1] == whole.context.experiment.history["val_loss"]


def unvalidated(config: Any = CONFIG, epochs: int = 2, **reported: Any) -> Any:
    """Train a loop without validation that reports these; what is callable is given the loss and the batch's number."""
    line = Line(config)
    for batch in line.loop(validation_loader=None, evaluate_batch=None, epochs=epochs):
        loss = line.step(batch)
        number = line.context.batch_idx
        values = {name: each(loss, number) if callable(each) else each for name, each in reported.items()}
        line.context.report(values)
    return line.context.experiment


def test_the_first_reported_metric_compares_trials(caplog: pytest.LogCaptureFixture) -> None:
    experiment = unvalidated(d_loss=lambda loss, _: loss, g_loss=1.0)
    assert experiment.metric == experiment.config["searcher"]["metric"] == "d_loss"
    assert "trials are compared by 'd_loss'; a smaller value is better" in caplog.text
    [trial] = experiment.trials
    assert trial.best_validation == min(row["d_loss"] for row in trial.metrics("validation"))
    assert experiment.top_checkpoint().metrics["d_loss"] == trial.best_validation


@pytest.mark.parametrize(
    ("names", "chosen"),
    [
        (["accuracy", "loss"], "loss"),
        (["loss", "val_accuracy"], "val_accuracy"),
        (["val_accuracy", "val_loss", "loss"], "val_accuracy"),
    ],
)
def test_a_validation_of_the_loops_own_is_preferred(names: list[str], chosen: str) -> None:
    assert unvalidated(**dict.fromkeys(names, 1.0)).metric == chosen


def test_a_metric_that_the_configuration_names_is_checked_in_the_loop() -> None:
    config = CONFIG | {"searcher": {"metric": "val_loss"}}
    assert unvalidated(config, loss=1.0, val_loss=0.5).trials[0].best_validation == 0.5
    numbers = []
    with pytest.raises(TrialDefinitionError, match=r"'val_loss', but the loop of .* reported loss\. Did you mean"):
        unvalidated(config, epochs=200, loss=lambda _, number: numbers.append(number) or 1.0)
    assert numbers[-1] == 0, "the first report shows it"


def test_without_validation_there_are_only_metrics_of_the_training() -> None:
    experiment = unvalidated(loss=lambda loss, _: loss, accuracy=0.25)
    assert not experiment.detail().validates
    history = experiment.history
    assert list(history) == ["loss", "accuracy"]
    rows = [row["loss"] for row in experiment.trials[0].metrics("training")]
    assert history["loss"] == pytest.approx([sum(rows[:3]) / 3, sum(rows[3:]) / 3])
    assert [row["batch"] for row in experiment.metrics()] == list(range(1, 7))
    figure = experiment.plot()
    assert {line.get_label() for axis in figure.axes for line in axis.get_lines()} == {"training"}
    assert len(Line().fit().history["val_loss"]) == 2, "a validation is called so"


def test_not_a_number_of_a_side_metric_is_a_value_like_others() -> None:
    nan = float("nan")
    experiment = unvalidated(
        loss=lambda loss, _: loss,
        norm=lambda _, number: nan if number == 1 else 2.0,
        never=nan,
        val_score=lambda _, number: float(number) if number % 3 == 2 else nan,
        config=CONFIG | {"searcher": {"metric": "loss"}},
    )
    rows = experiment.metrics()
    assert [math.isnan(row["norm"]) for row in rows] == [False, True, False, False, False, False]
    first, second = experiment.trials[0].metrics("validation")
    assert (first["norm"], first["val_score"], second["val_score"]) == (2.0, 2.0, 5.0)
    assert math.isnan(first["never"])
    assert experiment.history["val_score"] == [2.0, 5.0]
    assert experiment.state is ExperimentState.COMPLETED


def test_not_a_number_of_the_metric_that_trials_are_compared_by_ends_nothing_but_a_trial_of_a_search() -> None:
    spoilt = {"d_loss": lambda loss, number: float("nan") if number == 1 else loss}
    experiment = unvalidated(**spoilt, g_loss=1.0)
    assert experiment.state is ExperimentState.COMPLETED
    assert [math.isnan(row["d_loss"]) for row in experiment.trials[0].metrics("validation")] == [True, False]
    with pytest.raises(DivergedError, match="'d_loss' became NaN"):
        unvalidated(**spoilt, g_loss=1.0, config=CONFIG | {"nan": "stop"})


def test_metrics_called_as_the_columns_of_rows_are_kept_apart_from_them() -> None:
    experiment = unvalidated(loss=1.0, batch=0.5, trial=7.0, epochs=1)
    row = {"trial": experiment.trials[0].id, "batch": 3, "loss": 1.0, "batch (metric)": 0.5, "trial (metric)": 7.0}
    assert experiment.metrics("training")[-1] == row
    assert experiment.history == {"loss": [1.0], "batch": [0.5], "trial": [7.0]}


def test_means_go_on_from_a_checkpoint_of_before() -> None:
    keeper = MeansKeeper()
    keeper.load_state_dict({"sums": {"loss": (3.0, 2)}, "last": {}})
    assert keeper.sums == {"loss": (3.0, 2, False)}
