"""How a loop over ``context.train()`` may end besides running out of batches, and what its last batch then is."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from loop_run import LoopRun  # noqa: E402 (after the check for torch)
from native_line import CONFIG, Line, torch_generator, torch_is_warm  # noqa: E402, F401 (autouse)

import det_native as det  # noqa: E402
from det_native.errors import TrialDefinitionError  # noqa: E402
from det_native.schema.states import ExperimentState  # noqa: E402

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("recorded")]


def first(count: int, batches: Any) -> Iterator[Any]:
    for number, batch in enumerate(batches):
        if number == count:
            return
        yield batch


def train(line: Line, batches: Any) -> None:
    for batch in batches:
        line.context.report(loss=line.step(batch))


def step_and_report(line: Line, batch: Any) -> None:
    line.context.report(loss=line.step(batch))


def ends_by_islice(line: Line) -> None:
    train(line, islice(line.loop(), 4))


def ends_by_zip(line: Line) -> None:
    for _, batch in zip(range(4), line.loop(), strict=False):
        line.context.report(loss=line.step(batch))


def ends_by_zip_with_a_batch_too_many(line: Line) -> None:
    for batch, _ in zip(line.loop(), range(4), strict=False):
        line.context.report(loss=line.step(batch))


def ends_by_a_generator_that_returns(line: Line) -> None:
    train(line, first(4, line.loop()))


def ends_within_a_call(line: Line) -> None:
    list(map(partial(step_and_report, line), islice(line.loop(), 4)))


def ends_by_a_sum(line: Line) -> None:
    assert sum(line.step(batch).item() for batch in islice(line.loop(), 4)) > 0


def ends_with_a_name(line: Line) -> None:
    pairs = zip(range(4), line.loop(), strict=False)
    for _, batch in pairs:
        line.context.report(loss=line.step(batch))


ENDINGS = [
    ends_by_islice,
    ends_by_zip,
    ends_by_zip_with_a_batch_too_many,
    ends_by_a_generator_that_returns,
    ends_within_a_call,
    ends_by_a_sum,
    ends_with_a_name,
]


@pytest.mark.parametrize("end", ENDINGS, ids=lambda end: end.__name__)
def test_an_iterator_around_the_loop_that_ends_is_as_a_break(end: Any) -> None:
    line = Line()
    end(line)
    if end is ends_with_a_name:
        gc.collect()  # what has a name ends with its function, when that is collected
    experiment = line.context.experiment
    assert experiment.state is ExperimentState.COMPLETED
    assert experiment.trials[0].detail().batches == 4
    last = experiment.trials[0].checkpoints[-1]
    assert last.batch == 4
    assert torch.equal(last.load().weight, line.model.weight)
    assert [row["batch"] for row in experiment.trials[0].metrics("validation")] == [3, 4]


@pytest.mark.long
def test_a_loop_whose_parts_are_collected_from_the_inside_ends_as_a_break() -> None:
    """The garbage collector closes what is in a cycle in any order: the controller's batches before their iterator."""
    line, inner = Line(), []

    def loop_in_a_cycle() -> None:
        batches = line.loop()
        for _, batch in zip(range(4), batches, strict=False):
            line.context.report(loss=line.step(batch))
        inner.append(batches._batches.gi_yieldfrom)  # type: ignore[attr-defined]

    loop_in_a_cycle()
    inner.pop().close()
    gc.collect()
    experiment = line.context.experiment
    assert experiment.state is ExperimentState.COMPLETED
    assert experiment.trials[0].detail().batches == 4


def fails_in_zip(line: Line) -> None:
    def failing() -> Iterator[int]:
        yield from range(3)
        raise OSError("in the other one")

    for _, batch in zip(failing(), line.loop(), strict=False):
        line.step(batch)


def fails_in_map(line: Line) -> None:
    def failing(batch: Any) -> Any:
        line.step(batch)
        if line.context.batch_idx == 2:
            raise OSError("in what is mapped")

    for _ in map(failing, line.loop()):
        pass


def fails_in_a_call(line: Line) -> None:
    def failing(batch: Any) -> Any:
        line.step(batch)
        if line.context.batch_idx == 2:
            raise OSError("in a call")

    list(map(failing, line.loop()))


def fails_in_a_generator(line: Line) -> None:
    def failing(batches: Any) -> Iterator[Any]:
        for batch in batches:
            if line.context.batch_idx == 2:
                raise OSError("in a generator")
            yield batch

    for batch in failing(line.loop()):
        line.step(batch)


def fails_behind_finally(line: Line) -> None:
    for batch in line.loop():
        try:
            line.step(batch)
            if line.context.batch_idx == 2:
                raise OSError("in the body")
        finally:
            line.context.state["seen"] = line.context.batch_idx


def fails_with_another_handler(line: Line) -> None:
    for batch in line.loop():
        try:
            line.step(batch)
            if line.context.batch_idx == 2:
                raise OSError("in the body")
        except KeyError:
            line.context.state["seen"] = line.context.batch_idx


FAILURES = [
    fails_in_zip,
    fails_in_map,
    fails_in_a_call,
    fails_in_a_generator,
    fails_behind_finally,
    fails_with_another_handler,
]


@pytest.mark.long
@pytest.mark.parametrize("fail", FAILURES, ids=lambda fail: fail.__name__)
def test_an_exception_around_the_loop_is_an_error(fail: Any) -> None:
    with pytest.raises(OSError, match="in "):
        fail(Line())
    gc.collect()
    assert det.last_experiment().state is ExperimentState.ERROR


@pytest.mark.long
def test_a_break_validates_and_a_validation_that_was_just_made_is_not_made_again() -> None:
    for left, validated in ((2, [3]), (3, [3, 4]), (0, [1])):
        line = Line()
        for batch in line.loop():
            line.context.report(loss=line.step(batch))
            if line.context.batch_idx == left:
                break
        trial = line.context.experiment.trials[0]
        assert [row["batch"] for row in trial.metrics("validation")] == validated
        assert trial.checkpoints[-1].batch == left + 1
        assert line.context.experiment.history["val_loss"]


def test_a_batch_that_the_body_has_not_used_does_not_count() -> None:
    line = Line()
    for batch in line.loop():
        if line.context.batch_idx == 2:
            break
        line.step(batch)
    trial = line.context.experiment.trials[0]
    assert (trial.detail().batches, trial.checkpoints[-1].batch) == (2, 2)


def test_a_loop_that_is_left_at_once_has_trained_nothing() -> None:
    line = Line()
    for _ in line.loop():
        break
    experiment = line.context.experiment
    assert experiment.state is ExperimentState.COMPLETED
    assert (experiment.trials[0].detail().batches, experiment.checkpoints) == (0, [])


def test_a_batch_that_was_reported_of_counts() -> None:
    line = Line()
    for batch in line.loop():
        loss = line.loss(batch)
        line.context.report(loss=loss)
        if line.context.batch_idx == 2:
            break
        line.context.backward(loss)
        line.context.step_optimizer(line.optimizer)
    trial = line.context.experiment.trials[0]
    assert [row["batch"] for row in trial.metrics()] == [1, 2, 3]
    assert trial.detail().batches == 3


def same(mine: dict[str, Any], other: dict[str, Any]) -> bool:
    return all(torch.equal(mine[name], other[name]) for name in mine) and mine.keys() == other.keys()


def content(run: LoopRun, manifest: Any, folder: Path) -> dict[str, Any]:
    """What a checkpoint holds of the training: weights, rate, generators."""
    run.storage.fetch(manifest.uuid, folder)
    state = torch.load(folder / "state_dict.pth", weights_only=True)
    return {
        "weights": state["models_state_dict"][0],
        "moments": [value for one in state["optimizers_state_dict"][0]["state"].values() for value in one.values()],
        "schedulers": (folder / "schedulers.json").read_text(),
        "generators": (folder / "rng.npz").read_bytes(),
    }


def test_a_loop_that_is_left_saves_what_one_that_goes_on_has_there(tmp_path: Path) -> None:
    whole = LoopRun(tmp_path / "whole", min_checkpoint_period={"batches": 4})
    whole.train()
    left = LoopRun(tmp_path / "left")
    for batch in left.batches():
        left.step(batch)
        if left.context.batch_idx == 3:
            break
    assert left.result()["rate"] == pytest.approx([0.05 * 0.9**4])
    [there] = [one for _, one in whole.reporter.checkpoints if one.batch == 4]
    mine, theirs = (
        content(run, manifest, tmp_path / name)
        for run, manifest, name in ((left, left.last(), "mine"), (whole, there, "theirs"))
    )
    assert left.last().batch == 4
    assert same(mine.pop("weights"), theirs.pop("weights"))
    assert all(map(torch.equal, mine.pop("moments"), theirs.pop("moments")))
    assert mine == theirs


def test_a_loop_that_was_left_stays_ended_where_its_worker_is_started_again(tmp_path: Path) -> None:
    left = LoopRun(tmp_path)
    for batch in left.batches():
        left.step(batch)
        if left.context.batch_idx == 3:
            break
    again = LoopRun(tmp_path, resume=left.last())
    assert list(again.batches()) == []
    assert again.result()["outcome"] == (4, False)
    assert again.result()["validation"] == left.result()["validation"]
    assert same(again.result()["model"], left.result()["model"])


def test_a_batch_that_was_stepped_by_torch_alone_counts_where_the_loop_was_left(tmp_path: Path) -> None:
    left = LoopRun(tmp_path)
    for batch in left.batches():
        left.optimizer.zero_grad()
        left.loss(batch).backward()
        left.optimizer.step()
        if left.context.batch_idx == 3:
            break
    assert left.result()["outcome"] == (4, False)
    assert left.last().batch == 4
    assert not left.optimizer._optimizer_step_pre_hooks


def test_a_second_loop_over_batches_that_were_given_is_an_error() -> None:
    line = Line()
    batches = line.loop()
    for batch in batches:
        line.step(batch)
    with pytest.raises(TrialDefinitionError, match=r"A second loop over the same context\.train"):
        list(batches)


def test_batches_that_no_loop_asks_for_say_so() -> None:
    line = Line()
    batches = line.loop()
    assert "no loop has asked for its batches yet" in repr(batches)
    with pytest.warns(RuntimeWarning, match=r"context\.train\(\): no loop has asked for its batches yet, so nothing"):
        del batches
    assert line.context.experiment is None


def test_reducers_report_where_the_loop_does_not_and_where_it_is_left(tmp_path: Path) -> None:
    run = LoopRun(tmp_path, scheduling_unit=4)
    seen = run.context.experimental.wrap_reducer(sum, name="seen", for_validation=False)
    for batch in run.batches():
        run.step(batch, report=False)
        seen.update(1)
        if run.context.batch_idx == 5:
            break
    assert run.result()["training"] == [(4, {"seen": 4}), (6, {"seen": 2})]
