"""What a PyTorchTrial does wrong is told in one sentence that names the place, before any long work where it can be."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from det_harness.frameworks.torch.checks import check_trial_class
from digits_trials import Full, LocalRun, with_method
from torch import nn
from torch.optim.lr_scheduler import StepLR

from det_native.errors import ArgumentError, TrialDefinitionError
from det_native.pytorch import DataLoader, LRScheduler, PyTorchCallback, PyTorchTrial, Reducer

pytestmark = pytest.mark.slow


def wraps_nothing(self: Any, context: Any) -> None:
    self.context = context


def wraps_no_optimizer(self: Any, context: Any) -> None:
    context.wrap_model(nn.Linear(1, 1))


def foreign_parameters(self: Any, context: Any) -> None:
    context.wrap_model(nn.Linear(1, 1))
    context.wrap_optimizer(torch.optim.SGD(nn.Linear(1, 1).parameters(), lr=1.0))


class Endless(torch.utils.data.IterableDataset[Any]):
    def __iter__(self) -> Any:
        return iter(range(10**9))


def wraps_a_list(self: Any, context: Any) -> None:
    context.wrap_model([nn.Linear(1, 1)])


def wraps_optimizers(self: Any, context: Any) -> None:
    model = context.wrap_model(nn.Linear(1, 1))
    context.wrap_optimizer({"one": torch.optim.SGD(model.parameters(), lr=1.0)})


def schedules_foreign(self: Any, context: Any) -> None:
    model = context.wrap_model(nn.Linear(1, 1))
    context.wrap_optimizer(torch.optim.SGD(model.parameters(), lr=1.0))
    foreign = torch.optim.SGD(model.parameters(), lr=1.0)
    context.wrap_lr_scheduler(torch.optim.lr_scheduler.StepLR(foreign, 1), LRScheduler.StepMode.MANUAL_STEP)


def schedules_nothing(self: Any, context: Any) -> None:
    context.wrap_lr_scheduler(None, LRScheduler.StepMode.MANUAL_STEP)


def wraps_late(wrapper: str, make: Any) -> Any:
    """Return a train_batch() that wraps something."""

    def train_batch(self: Any, batch: Any, epoch_idx: int, batch_idx: int) -> Any:
        getattr(self.context, wrapper)(make(self))

    return train_batch


def clips_by_number(self: Any, batch: Any, epoch_idx: int, batch_idx: int) -> Any:
    self.context.step_optimizer(self.optimizer, clip_grads=1.0)


def asks_for_the_epoch(self: Any, context: Any) -> None:
    context.is_epoch_end()


def evaluates(*metrics: Any) -> dict[str, Any]:
    """Return methods that evaluate batch by batch, with these metrics one after the other."""
    found = iter([*metrics, *[metrics[-1]] * 100])
    return {
        "evaluate_batch": lambda self, batch: next(found),
        "evaluate_full_dataset": PyTorchTrial.evaluate_full_dataset,
    }


def steps_without_backward(self: Any, batch: Any, epoch_idx: int, batch_idx: int) -> Any:
    self.context.step_optimizer(self.optimizer)


def changes_names(self: Any, batch: Any, epoch_idx: int, batch_idx: int) -> Any:
    return {"loss": 1.0} if batch_idx == 0 else {"other": 1.0}


def steps_foreign(self: Any, batch: Any, epoch_idx: int, batch_idx: int) -> Any:
    self.context.step_optimizer(torch.optim.SGD(self.model.parameters(), lr=1.0))


@pytest.mark.parametrize(
    ("methods", "kind", "words"),
    [
        ({"__init__": wraps_nothing}, TrialDefinitionError, r"Broken\.__init__\(\) wrapped no model"),
        ({"__init__": wraps_no_optimizer}, TrialDefinitionError, "wrapped no optimizer"),
        ({"__init__": foreign_parameters}, TrialDefinitionError, "belong to no wrapped model"),
        ({"evaluate_batch": lambda self, batch: {}}, TrialDefinitionError, "both are there"),
        ({"train_batch": steps_without_backward}, TrialDefinitionError, "before any gradient"),
        ({"train_batch": steps_foreign}, ArgumentError, "not wrapped"),
        ({"train_batch": changes_names}, TrialDefinitionError, "metrics other for batch 2, but loss before"),
        ({"train_batch": lambda *a: None}, TrialDefinitionError, "returned NoneType"),
        (
            {"build_training_data_loader": lambda self: [1]},
            TypeError,
            r"Broken.build_training_data_loader\(\) must return a det.pytorch.DataLoader .* not list",
        ),
        ({"build_validation_data_loader": lambda self: None}, TypeError, r"Broken.build_validation.*not NoneType"),
        ({"build_training_data_loader": lambda self: DataLoader([], 4)}, TrialDefinitionError, "without batches"),
        ({"build_training_data_loader": lambda self: DataLoader(Endless())}, TrialDefinitionError, "records_per_epoch"),
        ({"__init__": wraps_a_list}, ArgumentError, r"^Broken: wrap_model\(\) takes one torch.nn.Module, not list"),
        (
            {"__init__": wraps_optimizers},
            ArgumentError,
            r"^Broken: wrap_optimizer\(\) takes one torch.optim.Optimizer, not dict",
        ),
        ({"__init__": schedules_foreign}, ArgumentError, "^Broken: .* a StepLR whose optimizer is not wrapped"),
        ({"__init__": asks_for_the_epoch}, TrialDefinitionError, r"Broken called context.is_epoch_end\(\)"),
        ({"train_batch": lambda *a: [1.0]}, TrialDefinitionError, r"Broken.train_batch\(\) returned list"),
        ({"evaluate_full_dataset": lambda *a: 1.0}, TrialDefinitionError, "returned float; return metrics by name"),
        ({"evaluate_full_dataset": lambda *a: {"loss": {"a": 1}}}, TrialDefinitionError, "searcher's metric 'loss'"),
        (evaluates({"loss": 1.0}, {"lost": 1.0}), TrialDefinitionError, "metrics lost for one batch and loss for"),
        (evaluates("loss"), TrialDefinitionError, r"Broken.evaluate_batch\(\) returned str; return metrics by name"),
        ({"evaluate_full_dataset": lambda *a: {"val": 1.0}}, TrialDefinitionError, "searcher.metric is 'loss'.*val"),
        ({"evaluate_full_dataset": lambda *a: {"loss": torch.ones(3)}}, TrialDefinitionError, r"shape \(3,\)"),
        (
            {"evaluate_full_dataset": lambda *a: {"loss": None}},
            TrialDefinitionError,
            "returned None for the searcher's metric 'loss'",
        ),
        ({"__init__": lambda self, c: c.wrap_model(nn.Linear)}, ArgumentError, r"wrap_model\(Linear\(\.\.\.\)\)"),
        ({"__init__": schedules_nothing}, ArgumentError, "takes a scheduler of torch.optim.lr_scheduler, not NoneType"),
        (
            {"__init__": lambda self, c: c.get_optimizer(3)},
            ArgumentError,
            r"get_optimizer\(3\) asks .* that Broken has not",
        ),
        (
            {"train_batch": wraps_late("wrap_model", lambda self: nn.Linear(1, 1))},
            ArgumentError,
            r"Broken: wrap_model\(\) was called when the training had begun. Wrap everything before it",
        ),
        (
            {"train_batch": wraps_late("wrap_optimizer", lambda self: torch.optim.SGD(self.model.parameters(), lr=1))},
            ArgumentError,
            r"Broken: wrap_optimizer\(\) was called when",
        ),
        (
            {"train_batch": wraps_late("wrap_lr_scheduler", lambda self: StepLR(self.optimizer, 1))},
            ArgumentError,
            r"wrap_lr_scheduler\(\) was",
        ),
        (
            {"train_batch": wraps_late("wrap_scaler", lambda self: torch.amp.GradScaler("cpu"))},
            ArgumentError,
            r"wrap_scaler\(\) was",
        ),
        ({"train_batch": clips_by_number}, ArgumentError, r"clip_grads=1.0, which is no function"),
        (
            {"train_batch": lambda self, batch: 1.0},
            TrialDefinitionError,
            r"Broken\.train_batch\(self, batch\) must take \(self, batch, epoch_idx, batch_idx\): too many positional",
        ),
        ({"build_callbacks": lambda self: [1]}, TrialDefinitionError, "dictionary of det.pytorch.PyTorchCallback"),
    ],
)
def test_bad_input_is_one_sentence_that_names_the_place(
    tmp_path: Path, methods: dict[str, Any], kind: type[Exception], words: str
) -> None:
    with pytest.raises(kind, match=words):
        LocalRun(tmp_path, batches=3).run(with_method(**methods))


def test_a_metric_without_a_reducer_is_told_at_the_first_batch_of_the_validation(tmp_path: Path) -> None:
    evaluated: list[int] = []

    def evaluate(self: Any, batch: Any) -> dict[str, float]:
        evaluated.append(1)
        return {"loss": 1.0, "other": 2.0}

    methods = {**evaluates({}), "evaluate_batch": evaluate, "evaluation_reducer": lambda self: {"loss": Reducer.SUM}}
    with pytest.raises(TrialDefinitionError, match=r"has no .* for the metric 'other'"):
        LocalRun(tmp_path, batches=1).run(with_method(**methods))
    assert evaluated == [1]


def test_an_optimizer_that_needs_a_closure_is_told_how_to_step_it(tmp_path: Path) -> None:
    def makes(self: Any, context: Any) -> None:
        Full.__init__(self, context)
        self.context.optimizers.clear()
        self.context.as_wrapped.groups.clear()
        self.optimizer = context.wrap_optimizer(torch.optim.LBFGS(self.model.parameters(), lr=0.1))

    def steps(self: Any, batch: Any, epoch_idx: int, batch_idx: int) -> Any:
        self.context.backward(self.model(batch[0]).sum())
        self.optimizer.step()

    def closes(self: Any, batch: Any, epoch_idx: int, batch_idx: int) -> Any:
        def closure() -> Any:
            self.optimizer.zero_grad()
            loss = nn.functional.cross_entropy(self.model(batch[0]), batch[1])
            self.context.backward(loss)
            return loss

        return self.optimizer.step(closure)

    words = r"Broken.train_batch\(\) stepped LBFGS, .* without one: call LBFGS.step\(closure\)"
    for method in (Full.train_batch, steps):
        with pytest.raises(TrialDefinitionError, match=words):
            LocalRun(tmp_path, batches=1).run(with_method(__init__=makes, train_batch=method))
    run = LocalRun(tmp_path, batches=2)
    run.run(with_method(__init__=makes, train_batch=closes))
    assert run.reporter.training_rows[1].metrics["loss"] < run.reporter.training_rows[0].metrics["loss"]


class AsksForTheEnd(PyTorchCallback):
    def on_checkpoint_end(self) -> None:  # type: ignore[override]
        """Lack a parameter."""


@pytest.mark.parametrize(
    ("methods", "words"),
    [
        (
            {"build_validation_data_loader": lambda self: DataLoader([], batch_size=4)},
            r"Broken.build_validation_data_loader\(\) returned has no batches",
        ),
        ({"evaluation_reducer": lambda self: "mean"}, r"Broken.evaluation_reducer\(\) returned 'mean', which is no"),
        (
            {**evaluates({"loss": 1.0}), "evaluation_reducer": lambda self: {"other": Reducer.SUM}},
            r"Broken.evaluation_reducer\(\) has no det.pytorch.Reducer for the metric 'loss', which is searcher.metric",
        ),
        (
            {"build_callbacks": lambda self: {"end": AsksForTheEnd()}},
            r"AsksForTheEnd.on_checkpoint_end\(\) of the callback 'end' must take \(self, checkpoint_dir\): too many",
        ),
    ],
)
def test_what_only_a_validation_or_checkpoint_would_meet_is_told_before_training(
    tmp_path: Path, methods: dict[str, Any], words: str
) -> None:
    trained: list[int] = []
    with pytest.raises(TrialDefinitionError, match=words):
        LocalRun(tmp_path, batches=3).run(with_method(**methods, train_batch=lambda *a: trained.append(1)))
    assert trained == []


def test_missing_methods_and_the_old_interface_are_named_before_anything_runs(tmp_path: Path) -> None:
    incomplete = type("Incomplete", (PyTorchTrial,), {"__init__": wraps_nothing})
    with pytest.raises(TrialDefinitionError, match=r"Incomplete lacks build_training_data_loader\(\)"):
        LocalRun(tmp_path).run(incomplete)
    with pytest.raises(TrialDefinitionError, match="neither is there"):
        LocalRun(tmp_path).run(with_method(evaluate_full_dataset=PyTorchTrial.evaluate_full_dataset))


class OldTrial(PyTorchTrial):
    """As the tutorials of Determined 0.12.12 had it."""

    def __init__(self, context: Any) -> None:
        self.context = context

    def build_training_data_loader(self) -> Any: ...

    def build_validation_data_loader(self) -> Any: ...

    def build_model(self) -> nn.Module:
        return nn.Linear(1, 1)

    def optimizer(self, model: nn.Module) -> torch.optim.Optimizer:
        return torch.optim.SGD(model.parameters(), lr=1.0)

    def train_batch(self, batch: Any, model: nn.Module, epoch_idx: int, batch_idx: int) -> Any: ...  # type: ignore[override]

    def evaluate_batch(self, batch: Any, model: nn.Module) -> Any: ...  # type: ignore[override]


class OldTrialWithoutInit(OldTrial):
    __init__ = PyTorchTrial.__init__
    __abstractmethods__ = frozenset({"__init__"})

    def create_lr_scheduler(self, optimizer: Any) -> Any: ...


def test_the_old_interface_is_refused_with_the_steps_of_the_migration() -> None:
    with pytest.raises(TrialDefinitionError) as caught:
        check_trial_class(OldTrial)
    assert str(caught.value) == (
        "OldTrial uses the interface of Determined 0.12.12 and earlier (build_model(), optimizer()): in "
        "__init__(self, context), make and keep in self what these made, and wrap it with context.wrap_model() and "
        "context.wrap_optimizer(). Methods take no model any more, and train_batch() calls context.backward(loss), "
        "then context.step_optimizer(optimizer)."
    )
    with pytest.raises(TrialDefinitionError, match=r"create_lr_scheduler\(\)\).*context.wrap_lr_scheduler\(\)"):
        check_trial_class(OldTrialWithoutInit)


def test_a_helper_of_the_old_name_is_no_old_interface(tmp_path: Path) -> None:
    helpers = {"build_model": lambda self: nn.Linear(64, 10), "build_callbacks": lambda self: {}}
    LocalRun(tmp_path, batches=1).run(with_method(**helpers))
    unwrapped = {**helpers, "optimizer": lambda self: None, "__init__": wraps_nothing}
    with pytest.raises(TrialDefinitionError, match=r"^Broken uses the interface"):
        LocalRun(tmp_path, batches=1).run(with_method(**unwrapped))


def test_a_training_metric_that_is_no_number_is_told_with_the_way_out(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def counts(self: Any, batch: Any, epoch_idx: int, batch_idx: int) -> Any:
        return {"loss": Full.train_batch(self, batch, epoch_idx, batch_idx), "matrix": torch.ones(3, 3)}

    run = LocalRun(tmp_path, batches=2)
    run.run(with_method(train_batch=counts))
    assert [list(row.metrics) for row in run.reporter.training_rows] == [["loss"]] * 2
    assert caplog.text.count("Broken.train_batch() returned Tensor for the metric 'matrix'") == 1
    assert "context.experimental.wrap_reducer()" in caplog.text


def test_a_metric_that_comes_late_is_a_change_of_names(tmp_path: Path) -> None:
    def late(self: Any, batch: Any, epoch_idx: int, batch_idx: int) -> Any:
        return {"loss": 1.0} if batch_idx else {}

    with pytest.raises(TrialDefinitionError, match="metrics loss for batch 2, but none before"):
        LocalRun(tmp_path, batches=3).run(with_method(train_batch=late))
