"""The context: wrapping, steps, the place in the epoch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from det_native.errors import ArgumentError, TrialDefinitionError, UnsupportedFeatureError
from det_native.pytorch import LRScheduler, PyTorchTrialContext
from det_native.pytorch.gradients import LocalGradients
from det_native.pytorch.stepping import OptimizerSteps
from det_native.schema.environment import TrialEnvironment

pytestmark = pytest.mark.slow

# The first optimizer of a process imports half of torch and makes a cache folder: here, before any test is watched.
torch.optim.SGD([nn.Parameter(torch.zeros(1))], lr=0.1)


def context(**optimizations: Any) -> PyTorchTrialContext:
    return PyTorchTrialContext(TrialEnvironment(config={"optimizations": optimizations}, hparams={}))


def wrapped(made: PyTorchTrialContext) -> tuple[nn.Module, torch.optim.Optimizer]:
    model = made.wrap_model(nn.Linear(2, 1))
    return model, made.wrap_optimizer(torch.optim.SGD(model.parameters(), lr=1.0))


def test_wrapping_returns_the_users_own_objects() -> None:
    made = context()
    model, optimizer = wrapped(made)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1)
    assert made.wrap_lr_scheduler(scheduler, LRScheduler.StepMode.MANUAL_STEP) is scheduler
    assert made.models == [model]
    assert made.get_optimizer() is optimizer
    assert made.lr_schedulers[0].scheduler is scheduler
    with pytest.raises(ArgumentError, match="wrapped already"):
        made.wrap_model(model)
    with pytest.raises(ArgumentError, match=r"get_optimizer\(1\) asks for an optimizer"):
        made.get_optimizer(1)
    with pytest.raises(ArgumentError, match=r"torch\.nn\.Module, not int"):
        made.wrap_model(3)  # type: ignore[arg-type]


def test_schedulers_are_checked() -> None:
    made = context()
    _, optimizer = wrapped(made)
    foreign = torch.optim.lr_scheduler.StepLR(torch.optim.SGD(nn.Linear(1, 1).parameters(), lr=1.0), 1)
    with pytest.raises(ArgumentError, match="not wrapped"):
        made.wrap_lr_scheduler(foreign, LRScheduler.StepMode.MANUAL_STEP)
    plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer)
    with pytest.raises(ArgumentError, match="MANUAL_STEP"):
        made.wrap_lr_scheduler(plateau, LRScheduler.StepMode.STEP_EVERY_EPOCH)
    with pytest.raises(ArgumentError, match="step_mode must be one of"):
        made.wrap_lr_scheduler(plateau, "epoch")  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="step_mode must be one of"):
        made.wrap_lr_scheduler(plateau)


def test_one_of_our_own_schedulers_says_when_it_steps() -> None:
    made = context()
    model, optimizer = wrapped(made)
    torchs = torch.optim.lr_scheduler.StepLR(optimizer, 1, gamma=0.5)
    ours = LRScheduler(torchs, LRScheduler.StepMode.MANUAL_STEP)
    assert made.wrap_lr_scheduler(ours) is torchs
    assert made.lr_schedulers[0].step_mode is LRScheduler.StepMode.MANUAL_STEP
    made.backward(model(torch.ones(1, 2)).sum())
    made.step_optimizer(optimizer)
    ours.step()
    assert ours.get_last_lr() == [0.5]
    with pytest.raises(ArgumentError, match="contradicts the scheduler's own"):
        made.wrap_lr_scheduler(ours, LRScheduler.StepMode.STEP_EVERY_BATCH)


def test_clipping_sees_the_averaged_gradients_of_the_kth_batch() -> None:
    made = context(aggregation_frequency=2)
    model, optimizer = wrapped(made)
    seen: list[list[float]] = []
    before = model.weight.detach().clone()
    for batch, value in enumerate((1.0, 3.0)):
        made.enter_batch(batch)
        made.backward(model(torch.full((1, 2), value)).sum())
        made.step_optimizer(optimizer, clip_grads=lambda parameters: seen.append(parameters[0].grad[0].tolist()))
    assert seen == [[2.0, 2.0]]
    torch.testing.assert_close(model.weight, before - 2.0)
    assert model.weight.grad is None
    with pytest.raises(ArgumentError, match="aggregation_frequency = 2"):
        made.step_optimizer(optimizer, auto_zero_grads=False)


def test_gradients_are_kept_if_asked() -> None:
    made = context()
    model, optimizer = wrapped(made)
    made.backward(model(torch.ones(1, 2)).sum())
    made.step_optimizer(optimizer, auto_zero_grads=False)
    assert model.weight.grad is not None


@pytest.mark.parametrize("loss", [1.5, {"loss": torch.ones(1)}, None])
def test_backward_wants_the_loss_as_a_tensor(loss: Any) -> None:
    with pytest.raises(ArgumentError, match=r"takes the loss as a tensor, not (float|dict|NoneType) "):
        context().backward(loss)


def test_backward_passes_per_step_must_agree() -> None:
    made = context()
    model = made.wrap_model(nn.Linear(2, 1))
    optimizer = made.wrap_optimizer(torch.optim.SGD(model.parameters(), lr=1.0), backward_passes_per_step=2)
    made.backward(model(torch.ones(1, 2)).sum())
    made.step_optimizer(optimizer, backward_passes_per_step=2)
    made.backward(model(torch.ones(1, 2)).sum())
    with pytest.raises(ArgumentError, match=r"contradicts.*set it in wrap_optimizer"):
        made.step_optimizer(optimizer, backward_passes_per_step=3)


def test_backward_passes_that_only_the_step_is_told_add_up() -> None:
    made = context()
    model = made.wrap_model(nn.Linear(2, 1, bias=False))
    before = model.weight.detach().clone()
    optimizer = made.wrap_optimizer(torch.optim.SGD(model.parameters(), lr=1.0))
    for factor in (1.0, 2.0):
        made.backward(model(factor * torch.ones(1, 2)).sum())
    made.step_optimizer(optimizer, backward_passes_per_step=2)
    assert torch.equal(model.weight, before - 3.0)
    for wrong in (0, "2", True):
        with pytest.raises(ArgumentError, match="takes a number of backward passes, 1 or more"):
            made.step_optimizer(optimizer, backward_passes_per_step=wrong)


def test_data_of_any_nesting_goes_to_the_device() -> None:
    made = context()
    made.device = torch.device("meta")
    data = {"image": np.ones((2, 3), "float32"), "rest": [torch.ones(2), (torch.zeros(1),)], "name": "a"}
    moved = made.to_device(data)
    assert moved["image"].device == moved["rest"][0].device == moved["rest"][1][0].device == torch.device("meta")
    assert (moved["image"].shape, moved["image"].dtype, moved["name"]) == ((2, 3), torch.float32, "a")
    assert isinstance(data["image"], np.ndarray)


def test_a_list_that_is_on_the_device_already_is_another_list_of_the_same_tensors() -> None:
    made = context()
    data = [torch.ones(2), torch.zeros(1)]
    moved = made.to_device(data)
    assert moved is not data
    assert moved[0] is data[0]
    assert moved[1] is data[1]
    pair = tuple(data)
    assert made.to_device(pair) is pair
    mixed = made.to_device((torch.ones(2), np.ones(2, "float32")))
    assert isinstance(mixed, tuple)
    assert torch.equal(mixed[1], torch.ones(2))


def test_a_step_after_the_first_does_all_that_came_to_be_due_since() -> None:
    made = context()
    model, optimizer = wrapped(made)
    before = model.weight.detach().clone()
    for _ in range(2):
        made.backward(model(torch.ones(1, 2)).sum())
        made.step_optimizer(optimizer)
    assert torch.equal(model.weight, before - 1 - 1)  # in two steps, as they are rounded
    assert model.weight.grad is None
    seen: list[float] = []
    made.call_before_steps([lambda parameters: seen.append(float(next(parameters).grad.sum()))])
    made.backward(model(torch.ones(1, 2)).sum())
    made.step_optimizer(optimizer)
    assert seen == [2.0]


def test_mixed_precision_comes_before_the_training() -> None:
    made = context()
    model, optimizer = wrapped(made)
    made.set_epoch_length(3)
    with pytest.raises(ArgumentError, match=r"configure_apex_amp\(\) was called when the training had begun"):
        made.configure_apex_amp(model, optimizer)


def test_the_place_in_the_epoch() -> None:
    made = context()
    with pytest.raises(TrialDefinitionError, match="not before training"):
        made.is_epoch_start()
    made.set_epoch_length(3)
    found = []
    for batch in range(6):
        made.enter_batch(batch)
        found.append((made.is_epoch_start(), made.is_epoch_end()))
    assert found == [(True, False), (False, False), (False, True)] * 2


def test_a_slip_of_the_documents_is_told() -> None:
    for owner in (context(), context().experimental):
        with pytest.raises(UnsupportedFeatureError, match="wrap_reducer"):
            owner.wrap_metric("loss")


def test_several_parts_of_a_gradient_add_up_before_the_step() -> None:
    made = context()
    model = made.wrap_model(nn.Linear(2, 1, bias=False))
    optimizer = made.wrap_optimizer(torch.optim.SGD(model.parameters(), lr=1.0), 2)
    before = model.weight.detach().clone()
    output = model(torch.ones(1, 2))
    made.backward(output.sum(), retain_graph=True)
    made.backward(output, torch.full((1, 1), 3.0))
    made.step_optimizer(optimizer)
    torch.testing.assert_close(model.weight, before - 4.0)


@pytest.mark.filterwarnings("ignore:Using backward")
def test_gradients_of_gradients() -> None:
    made = context()
    model, optimizer = wrapped(made)
    made.backward(model(torch.full((1, 2), 2.0)).pow(2).sum(), create_graph=True)
    first = model.weight.grad
    assert first is not None
    assert first.requires_grad
    made.backward(first.sum())
    made.step_optimizer(optimizer)


def test_a_hook_sees_the_gradients_before_the_step_and_the_clipping() -> None:
    made = context()
    model, optimizer = wrapped(made)
    seen: list[tuple[str, float]] = []
    made.call_before_steps([lambda parameters: seen.append(("hook", next(parameters).grad[0, 0].item()))])
    made.backward(model(torch.full((1, 2), 5.0)).sum())
    made.step_optimizer(optimizer, lambda parameters: seen.append(("clip", parameters[0].grad[0, 0].item())))
    assert seen == [("hook", 5.0), ("clip", 5.0)]


def test_models_are_not_sharded_once_there_are_optimizers() -> None:
    class Sharding(LocalGradients):
        sharded = True

    steps = OptimizerSteps(1, average=True, gradients=LocalGradients(), owner="fit")
    with pytest.raises(UnsupportedFeatureError, match=r"fsdp works for a PyTorchTrial class.*or leave the field out"):
        steps.join([], Sharding(), "train_batch()")
    steps.join([], LocalGradients(), "train_batch()")


def test_outside_any_run_everything_passes_through() -> None:
    made = PyTorchTrialContext.from_config({"hyperparameters": {"global_batch_size": 4}})
    model, optimizer = wrapped(made)
    assert made.configure_apex_amp(model, [optimizer], opt_level="O3") == (model, [optimizer])
    assert model.weight.dtype is torch.float32
    assert made.distributed.get_size() == 1
    made.backward(model(torch.ones(1, 2)).sum())
    made.step_optimizer(optimizer)
