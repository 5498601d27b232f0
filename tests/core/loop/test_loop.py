"""Loops of the Core API: plain code of any framework, with everything that belongs to a trial between two passes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from core_run import CoreRunOfTest
from sklearn.linear_model import SGDClassifier

from det_native.core.loop_call import CoreLoopCall, OperationsCall
from det_native.core.modes import EarlyExitReason
from det_native.core.native import CoreNativeContext
from det_native.errors import InvalidHP, TrialDefinitionError, UnsupportedFeatureError
from det_native.schema.environment import TrialEnvironment

X = np.random.default_rng(0).normal(size=(60, 3))
Y = (X[:, 0] > 0).astype(int)


class Training:
    """A model that is trained with random numbers of the process; what its numbers are in every epoch."""

    def __init__(self) -> None:
        self.model = SGDClassifier(loss="log_loss", random_state=0)
        self.losses: list[float] = []

    def train(self) -> float:
        chosen = np.random.permutation(len(X))[:20]
        self.model.partial_fit(X[chosen], Y[chosen], classes=[0, 1])
        self.losses.append(float(np.abs(self.model.coef_).sum()))
        return self.losses[-1]


def plainly(epochs: int) -> list[float]:
    np.random.seed(3)
    training = Training()
    return [training.train() for _ in range(epochs)]


def program(context: Any, seen: list[int] | None = None) -> Training:
    training = alias = Training()
    for epoch in context.epochs(4):
        context.report(loss=training.train())
        assert alias is training
        kept.append((epoch, list(training.losses)))
    return training


kept: list[Any] = []


@pytest.fixture(autouse=True)
def nothing_kept() -> None:
    kept.clear()


def test_the_numbers_are_those_of_the_plain_loop(tmp_path: Path) -> None:
    run = CoreRunOfTest(tmp_path).run(program)
    assert run.training("loss") == list(enumerate(plainly(4), 1))
    assert (run.outcome.batches, run.outcome.stopped, run.last.batch) == (4, False, 4)


def test_a_stopped_trial_goes_on_to_the_same_bits(tmp_path: Path) -> None:
    first = CoreRunOfTest(tmp_path, asks_from=2).run(program)
    assert (first.outcome.batches, first.outcome.stopped) == (2, True)
    kept.clear()
    CoreRunOfTest(tmp_path, resume=first.last).run(program)
    assert [epoch for epoch, _ in kept] == [0, 1, 2, 3], "a list that is not a name of the loop's is carried, too"
    assert kept[-1][1] == plainly(4)


def test_what_is_too_large_to_come_home_by_itself_is_there_when_a_trial_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def growing(context: Any) -> None:
        total, training = np.zeros(200_000), Training()
        for _ in context.epochs(4):
            total += training.train()
            context.report(loss=total[0])

    monkeypatch.setattr("det_native.heap.call.LIMIT", 1_000_000)
    first = CoreRunOfTest(tmp_path, asks_from=2).run(growing)
    assert (Path(first.reporter.checkpoints[-1][0]) / "heap_large.bin").exists()
    second = CoreRunOfTest(tmp_path, resume=first.last).run(growing)
    assert second.training("loss") == list(enumerate(np.cumsum(plainly(4)).tolist(), 1))[2:]


def test_an_epoch_counts_as_the_steps_that_its_body_reports(tmp_path: Path) -> None:
    def in_steps(context: Any) -> None:
        training, steps = Training(), 0
        for _ in context.epochs(4):
            for _ in range(5):
                steps += 1
                context.train.report_training_metrics(steps_completed=steps, metrics={"weights": training.train()})
            context.train.report_validation_metrics(steps_completed=steps, metrics={"loss": training.losses[-1]})
        kept.append(training.losses)

    whole = plainly(20)
    first = CoreRunOfTest(tmp_path, asks_from=3).run(in_steps)
    assert (first.outcome.batches, first.last.batch) == (15, 15)
    second = CoreRunOfTest(tmp_path, resume=first.last)
    second.run(in_steps)
    assert second.training("weights") == list(enumerate(whole, 1))[15:]
    assert first.validations("loss") == [(step, whole[step - 1]) for step in (5, 10, 15)]
    assert second.validations("loss") == [(20, whole[19])]
    assert second.services.schedule.periods.length == second.outcome.batches == 20


@pytest.mark.parametrize("reported", [True, False])
def test_break_ends_the_training_in_order(tmp_path: Path, reported: bool) -> None:
    def left(context: Any) -> None:
        training = Training()
        for epoch in context.epochs(4):
            if epoch == 2 and not reported:
                break
            context.report(loss=training.train())
            if epoch == 2:
                break

    run = CoreRunOfTest(tmp_path).run(left)
    batches = 3 if reported else 2
    assert (run.outcome.batches, run.outcome.stopped, run.last.batch) == (batches, False, batches)
    assert run.validations("loss")[-1] == (batches, plainly(batches)[-1])


@pytest.mark.parametrize("saves_each", [0, 1])
def test_what_a_pass_has_changed_that_does_not_count_is_kept(tmp_path: Path, saves_each: int) -> None:
    def left(context: Any) -> None:
        training = Training()
        for epoch in context.epochs(4):
            training.losses.append(epoch)
            if epoch == 1:
                break
            context.report(loss=epoch)

    run = CoreRunOfTest(tmp_path, saves_each=saves_each).run(left)
    last = Path(run.reporter.checkpoints[-1][0])
    assert (run.outcome.batches, run.last.batch) == (1, 1)
    assert (last / "after_training").exists() is bool(saves_each), "else it was saved after the pass that was left"


def test_an_exception_in_the_body_fails_the_trial_and_its_rows_are_kept(tmp_path: Path) -> None:
    def failing(context: Any) -> None:
        for epoch in context.epochs(4):
            context.report(loss=epoch)
            if epoch == 1:
                raise OSError("in the body")

    run = CoreRunOfTest(tmp_path)
    with pytest.raises(OSError, match="in the body"):
        run.run(failing)
    assert run.outcome is None
    assert run.training("loss") == [(1, 0), (2, 1)]


def test_a_body_that_asks_whether_to_end_goes_on_with_that_epoch(tmp_path: Path) -> None:
    def asking(context: Any) -> None:
        training = Training()
        for epoch in context.epochs(4):
            if context.preempt.should_preempt():
                break
            context.report(loss=training.train())
            kept.append(epoch)

    # Each pass asks twice: at its beginning, and at its end, where the stop of another question is taken.
    first = CoreRunOfTest(tmp_path, asks_from=5, length={"epochs": 4}).run(asking)
    assert (first.outcome.batches, first.outcome.stopped) == (2, True)
    assert not first.reporter.checkpoints, "nothing of a pass that begins again is saved"
    whole = CoreRunOfTest(tmp_path / "whole").run(asking)
    assert whole.training("loss") == list(enumerate(plainly(4), 1))


def test_an_operation_is_one_pass_as_long_as_the_search_wants_it(tmp_path: Path) -> None:
    def operating(context: Any) -> None:
        training = Training()
        for op in context.searcher.operations():
            while len(training.losses) < op.length:
                loss = training.train()
                context.train.report_training_metrics(len(training.losses), {"weights": loss})
                op.report_progress(len(training.losses))
            op.report_completed(loss)

    stages = {"name": "async_halving", "max_trials": 4, "num_rungs": 2, "max_length": {"batches": 12}}
    first = CoreRunOfTest(tmp_path, stage={"batches": 3}, **stages).run(operating)
    assert (first.outcome.batches, first.outcome.stopped, first.validations("loss")) == (3, False, [(3, plainly(3)[2])])
    second = CoreRunOfTest(tmp_path, stage={"batches": 12}, resume=first.last, **stages).run(operating)
    assert second.training("weights") == list(enumerate(plainly(12), 1))[3:]
    assert second.outcome.batches == 12


def test_an_operation_without_a_length_counts_as_what_it_has_reported(tmp_path: Path) -> None:
    def operating(context: Any) -> None:
        for op in context.searcher.operations():
            for step in range(7):
                context.train.report_training_metrics(step + 1, {"weights": 1.0})
            op.report_completed(0.25)

    run = CoreRunOfTest(tmp_path, length={"batches": 2**52}).run(operating)
    assert (run.outcome.batches, run.last.batch, run.validations("loss")) == (7, 7, [(7, 0.25)])


def test_an_operation_whose_body_counts_nothing_is_as_long_as_it_is_to_be(tmp_path: Path) -> None:
    def operating(context: Any) -> None:
        for op in context.searcher.operations():
            op.report_completed(1 / op.length)

    run = CoreRunOfTest(tmp_path, length={"batches": 4}).run(operating)
    assert (run.outcome.batches, run.last.batch, run.validations("loss")) == (4, 4, [(4, 0.25)])


def test_an_operation_that_nobody_reports_as_completed_counts_as_it(tmp_path: Path) -> None:
    def forgetful(context: Any) -> None:
        for _ in context.searcher.operations():
            context.train.report_validation_metrics(steps_completed=3, metrics={"loss": 0.5})

    run = CoreRunOfTest(tmp_path).run(forgetful)
    assert (run.outcome.batches, run.outcome.stopped) == (4, False)
    assert run.validations("loss")[0] == (3, 0.5)


def stores(context: Any) -> None:
    """Train in one operation, with checkpoints of its own."""
    training = Training()
    for op in context.searcher.operations():
        found = sorted(resumed)
        if found:
            with context.checkpoint.restore_path(found[0]) as path:
                training.losses, state = json.loads((path / "losses.json").read_text())
                training.model.partial_fit(X, Y, classes=[0, 1])
                training.model.coef_[:] = state["coef"]
                training.model.intercept_[:] = state["intercept"]
                training.model.t_ = state["t"]
                np.random.set_state(("MT19937", state["words"], state["place"], 0, 0.0))
        while len(training.losses) < op.length:
            training.train()
            steps = len(training.losses)
            context.train.report_training_metrics(steps, {"weights": training.losses[-1]})
            ending = context.preempt.should_preempt()
            if steps == 2 or ending:
                _, words, place, *_ = np.random.get_state()
                model = training.model
                state = {"coef": model.coef_.tolist(), "intercept": model.intercept_.tolist(), "t": model.t_}
                state |= {"words": words.tolist(), "place": place}
                with context.checkpoint.store_path({"steps_completed": steps}) as (path, uuid):
                    (path / "losses.json").write_text(json.dumps([training.losses, state]))
                kept.append(uuid)
            if ending:
                return
        op.report_completed(training.losses[-1])


resumed: set[str] = set()


def test_an_operation_goes_on_from_a_checkpoint_of_its_own(tmp_path: Path) -> None:
    resumed.clear()
    first = CoreRunOfTest(tmp_path, length={"batches": 6}, asks_from=4).run(stores)
    assert first.outcome.stopped
    assert first.last.batch == len(first.training("weights")) < 6
    assert {"losses.json", "loop.json"} <= {entry.name for entry in Path(first.reporter.checkpoints[-1][0]).iterdir()}
    resumed.add(first.last.uuid)
    second = CoreRunOfTest(tmp_path, length={"batches": 6}, resume=first.last).run(stores)
    assert first.training("weights") + second.training("weights") == list(enumerate(plainly(6), 1))
    assert second.outcome.batches == 6


def test_a_checkpoint_of_the_bodys_own_brings_the_beginning_of_its_epoch_back(tmp_path: Path) -> None:
    def storing(context: Any) -> None:
        training = Training()
        for epoch in context.epochs(4):
            context.report(loss=training.train())
            with context.checkpoint.store_path({"steps_completed": epoch + 1}) as (path, _):
                (path / "mine").write_text(str(epoch))
            if epoch == 2 and breaks:
                raise KeyboardInterrupt  # as if it was killed

    breaks = True
    first = CoreRunOfTest(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        first.run(storing)
    assert [manifest.batch for _, manifest in first.reporter.checkpoints] == [1, 2, 3]
    breaks = False
    for _, manifest in list(first.reporter.checkpoints):
        second = CoreRunOfTest(tmp_path, resume=manifest).run(storing)
        begun = second.training("loss")[0][0]
        assert second.training("loss") == list(enumerate(plainly(4), 1))[begun - 1 :]
        assert begun == max(1, manifest.batch), "the epoch in which it was made begins again"


def test_a_search_needs_a_metric(tmp_path: Path) -> None:
    def silent(context: Any) -> None:
        for _ in context.epochs(4):
            pass

    with pytest.raises(TrialDefinitionError, match="has reported no metrics"):
        CoreRunOfTest(tmp_path, name="random", max_trials=2).run(silent)


def test_parts_of_the_core_api_are_for_the_loop(tmp_path: Path) -> None:
    run = CoreRunOfTest(tmp_path)
    for part in ("train", "checkpoint", "preempt", "profiler"):
        with pytest.raises(TrialDefinitionError, match=rf"context\.{part} is for the body of `for epoch"):
            getattr(run.context, part)
    run.run(program)
    with pytest.raises(TrialDefinitionError, match=r"context\.train is for the body"):
        _ = run.context.train
    assert run.context.distributed.rank == 0


def test_an_epoch_is_a_batch_unless_the_configuration_counts_in_epochs() -> None:
    def fills(**config: Any) -> dict[str, Any]:
        environment = TrialEnvironment(config=config, hparams={}, trial_seed=0)
        return CoreLoopCall.of(CoreNativeContext(environment), [6], None).configuration_fills()

    assert fills() == {"searcher.metric": "loss", "searcher.max_length": {"batches": 6}}
    assert fills(min_checkpoint_period={"epochs": 2})["searcher.max_length"] == {"epochs": 6}


@pytest.mark.parametrize("kind", [CoreLoopCall, OperationsCall])
def test_several_slots_are_refused(tmp_path: Path, kind: Any) -> None:
    call = kind(CoreRunOfTest(tmp_path).context)
    environment = TrialEnvironment(config={"resources": {"slots_per_trial": 2}}, hparams={}, trial_seed=0)
    with pytest.raises(UnsupportedFeatureError, match=r"resources\.slots_per_trial: 2 is refused"):
        call.check(environment)


def test_hyperparameters_that_the_body_calls_invalid_end_the_trial(tmp_path: Path) -> None:
    def invalid(context: Any) -> None:
        for _ in context.epochs(4):
            context.train.report_early_exit(EarlyExitReason.INVALID_HP)

    with pytest.raises(InvalidHP):
        CoreRunOfTest(tmp_path).run(invalid)


WITHOUT_TORCH = """
import sys
import det_native as det
context = det.experimental.core.init(local=True)
for epoch in context.epochs(2):
    context.report(loss=epoch)
print([name for name in ("torch", "tensorflow", "jax") if name in sys.modules])
"""


@pytest.mark.slow
def test_a_loop_imports_no_framework(tmp_path: Path) -> None:
    script = tmp_path / "loop.py"
    script.write_text(WITHOUT_TORCH)
    environment = os.environ | {"DET_RECORD": "off"}
    ran = subprocess.run(
        [sys.executable, script], env=environment, cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert ran.stdout.splitlines()[-1] == "[]"
