"""Callbacks: every hook, in order, at a start and at a continuation; what they save; what is said about others."""

from __future__ import annotations

import logging
import warnings
from pathlib import Path
from typing import Any, ClassVar

import pytest
import torch
from det_harness.frameworks.torch.hooks import CallbackHooks
from digits_trials import DigitsTrial, LocalRun, same

from det_native.errors import ArgumentError, TrialDefinitionError
from det_native.pytorch import ClipGradsL2Norm, ClipGradsL2Value, PyTorchCallback, PyTorchTrialContext

pytestmark = pytest.mark.slow


class Told(PyTorchCallback):
    """Notes every hook with what it is given."""

    def __init__(self, events: list[Any]) -> None:
        self.events = events

    def on_trial_startup(self, first_batch_idx: int, checkpoint_uuid: str | None) -> None:
        self.events.append(("startup", first_batch_idx, checkpoint_uuid))

    def on_trial_shutdown(self) -> None:
        self.events.append("shutdown")

    def on_training_start(self) -> None:
        self.events.append("training")
        torch.rand(3)  # what a hook of a start draws must not change a training that is continued

    def on_training_epoch_start(self) -> None:  # type: ignore[override]  # as it was when it was new
        self.events.append("epoch")

    def on_training_epoch_end(self, epoch_idx: int) -> None:
        self.events.append(("epoch_end", epoch_idx))

    def on_validation_step_start(self) -> None:
        self.events.append("step_start")

    def on_validation_start(self) -> None:
        self.events.append("validation")

    def on_validation_step_end(self, metrics: dict[str, Any]) -> None:
        self.events.append(("step_end", sorted(metrics)))
        metrics.clear()  # its own copy

    def on_validation_end(self, metrics: dict[str, Any]) -> None:
        self.events.append(("validation_end", sorted(metrics)))

    def on_checkpoint_load_start(self, checkpoint: dict[str, Any]) -> None:
        self.events.append(("load", checkpoint["mine"], sorted(checkpoint["callbacks"])))

    def on_checkpoint_save_start(self, checkpoint: dict[str, Any]) -> None:
        checkpoint["mine"] = {"weights": len(checkpoint["models_state_dict"]), "set": {1, 2}}
        torch.rand(3)
        self.events.append("save")

    def on_checkpoint_write_end(self, checkpoint_dir: str) -> None:
        assert (Path(checkpoint_dir) / "state_dict.pth").exists()
        self.events.append("written")

    def on_checkpoint_end(self, checkpoint_dir: str) -> None:
        assert (Path(checkpoint_dir) / "state_dict.pth").exists()
        torch.rand(3)
        self.events.append("end")

    def on_checkpoint_upload_end(self, uuid: str) -> None:
        self.events.append(("uploaded", uuid))


class ToldTrial(DigitsTrial):
    events: ClassVar[list[Any]] = []

    def build_callbacks(self) -> dict[str, PyTorchCallback]:
        return {"told": Told(self.events), "counter": self.counter}

    def train_batch(self, batch: Any, epoch_idx: int, batch_idx: int) -> dict[str, Any]:
        self.events.append(batch_idx)
        return super().train_batch(batch, epoch_idx, batch_idx)


def without_uploads(events: list[Any]) -> list[Any]:
    """Return the events but those of uploads, which come when they are done."""
    return [event for event in events if not (isinstance(event, tuple) and event[0] == "uploaded")]


VALIDATION = ["step_start", "validation", ("step_end", ["accuracy", "loss"]), ("validation_end", ["accuracy", "loss"])]
SAVED = ["save", "written", "end"]


def test_every_hook_comes_in_its_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    events: list[Any] = []
    monkeypatch.setattr(ToldTrial, "events", events)
    run = LocalRun(tmp_path, batch_size=500, batches=5, min_validation_period={"batches": 2})
    run.run(ToldTrial, stop_at=4)
    assert without_uploads(events) == [
        ("startup", 0, None),
        "training",
        *("epoch", 0, 1, *VALIDATION, *SAVED, 2, ("epoch_end", 0)),
        *("epoch", 3, *SAVED),
        "shutdown",
    ]
    saved = [manifest.uuid for _, manifest in run.reporter.checkpoints]
    assert [event[1] for event in events if isinstance(event, tuple) and event[0] == "uploaded"] == saved
    events.clear()
    run.run(ToldTrial, resume=run.last())
    assert without_uploads(events) == [
        ("startup", 4, saved[-1]),
        ("load", {"weights": 2, "set": {1, 2}}, ["counter", "told"]),
        "training",
        *VALIDATION,
        *(4, *SAVED, *VALIDATION),
        "shutdown",
    ]
    whole = LocalRun(tmp_path / "whole", batch_size=500, batches=5, min_validation_period={"batches": 2})
    whole.run(DigitsTrial)
    ours, plain = run.state(), whole.state()
    del ours["mine"]
    assert same(ours, plain)


def test_shutdown_comes_after_an_error_too_and_does_not_hide_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    events: list[Any] = []
    monkeypatch.setattr(ToldTrial, "events", events)

    class Fails(ToldTrial):
        def build_callbacks(self) -> dict[str, PyTorchCallback]:
            class Broken(PyTorchCallback):
                def on_trial_shutdown(self) -> None:
                    raise ValueError("not this one")

            return {**super().build_callbacks(), "broken": Broken()}

        def train_batch(self, batch: Any, epoch_idx: int, batch_idx: int) -> dict[str, Any]:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        LocalRun(tmp_path).run(Fails)
    assert events[-1] == "shutdown"


def test_a_stop_that_a_hook_asks_for_comes_before_the_next_batch(tmp_path: Path) -> None:
    class Stops(DigitsTrial):
        def build_callbacks(self) -> dict[str, PyTorchCallback]:
            context = self.context

            class AfterAnEpoch(PyTorchCallback):
                def on_training_epoch_end(self, epoch_idx: int) -> None:
                    context.set_stop_requested(True)

            return {"stops": AfterAnEpoch()}

    run = LocalRun(tmp_path, batch_size=500)
    assert run.run(Stops).batches == 3


def test_the_old_hook_for_clipping_is_called_and_deprecated(tmp_path: Path) -> None:
    norms: list[float] = []

    class Clips(PyTorchCallback):
        def on_before_optimizer_step(self, parameters: Any) -> None:
            found = list(parameters)
            torch.nn.utils.clip_grad_norm_(found, 0.01)
            norms.append(float(torch.nn.utils.get_total_norm([one.grad for one in found])))

    class Clipped(DigitsTrial):
        def build_callbacks(self) -> dict[str, PyTorchCallback]:
            return {"clips": Clips()}

    with pytest.warns(DeprecationWarning, match=r"Clips.on_before_optimizer_step\(\) is deprecated.*clip_grads="):
        LocalRun(tmp_path, batches=3).run(Clipped)
    assert len(norms) == 6
    assert max(norms) <= 0.0101


class Watches(PyTorchCallback):
    """Notes the gradients of each step."""

    def __init__(self) -> None:
        self.seen: list[torch.Tensor] = []

    def on_before_optimizer_step(self, parameters: Any) -> None:
        self.seen.append(torch.cat([one.grad.flatten() for one in parameters]))


@pytest.mark.parametrize(("clips", "order"), [(ClipGradsL2Norm, 2), (ClipGradsL2Value, float("inf"))])
def test_the_clipping_callbacks_of_determined(clips: Any, order: float, tmp_path: Path) -> None:
    watches = Watches()

    class Clipped(DigitsTrial):
        def build_callbacks(self) -> dict[str, PyTorchCallback]:
            return {"clips": clips(0.001), "watches": watches}

    with pytest.warns(DeprecationWarning, match="clip_grads="):
        LocalRun(tmp_path, batches=2).run(Clipped)
    largest = [float(torch.linalg.vector_norm(gradients, order)) for gradients in watches.seen]
    assert largest == pytest.approx([0.001] * 4, rel=0.01)
    with pytest.raises(ArgumentError, match=rf"{clips.__name__}\(clip_value=-1\): give a number greater than 0"):
        clips(-1)


class ReduceLROnPlateauEveryValidationStep(PyTorchCallback):
    """The example of the documents, without ``verbose``, which torch no longer takes."""

    def __init__(self, context: PyTorchTrialContext) -> None:
        self.reduce_lr = torch.optim.lr_scheduler.ReduceLROnPlateau(
            context.get_optimizer(), "min", patience=0
        )  # customize arguments as desired here

    def on_validation_end(self, metrics: dict[str, Any]) -> None:
        self.reduce_lr.step(metrics["validation_error"])

    def state_dict(self) -> dict[str, Any]:
        return self.reduce_lr.state_dict()

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.reduce_lr.load_state_dict(state_dict)


def test_reduce_lr_on_plateau_as_the_documents_have_it(tmp_path: Path) -> None:
    rates: list[float] = []

    class Plateau(DigitsTrial):
        def __init__(self, context: PyTorchTrialContext) -> None:
            super().__init__(context)
            del context.lr_schedulers[:]

        def build_callbacks(self) -> dict[str, PyTorchCallback]:
            return {"reduce_lr": ReduceLROnPlateauEveryValidationStep(self.context)}

        def evaluate_batch(self, batch: Any) -> dict[str, Any]:
            rates.append(self.optimizer.param_groups[0]["lr"])
            return {**super().evaluate_batch(batch), "validation_error": 1.0}

    made = {"batches": 4, "min_validation_period": {"batches": 1}}
    run = LocalRun(tmp_path, **made)
    run.run(Plateau, stop_at=2)
    run.run(Plateau, resume=run.last())
    assert rates[::3] == pytest.approx([0.05, 0.05, 0.005, 0.0005])


def test_what_is_no_callback_and_what_is_no_hook(caplog: pytest.LogCaptureFixture) -> None:
    for given, described in (([1], "list"), ({"a": 3}, "a dictionary with int in it"), (None, "NoneType")):
        with pytest.raises(TrialDefinitionError, match=rf"Mine.build_callbacks\(\) must return.*{described}"):
            CallbackHooks("Mine", given, rank_zero=True)

    class Misspelled(PyTorchCallback):
        def on_validation_finish(self) -> None: ...

    with caplog.at_level(logging.WARNING):
        CallbackHooks("Mine", {"one": Misspelled()}, rank_zero=True)
    assert "Misspelled.on_validation_finish() is not called" in caplog.text


def test_other_ranks_leave_out_what_is_the_first_ones() -> None:
    events: list[Any] = []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        hooks = CallbackHooks("Mine", {"told": Told(events)}, rank_zero=False)
    hooks.call_with_metrics("on_validation_end", {})
    hooks.call_with_metrics("on_validation_step_end", {})
    hooks.call("on_checkpoint_end", "somewhere")
    hooks.call("on_validation_start")
    assert events == ["validation"]
