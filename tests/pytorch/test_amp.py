"""``configure_apex_amp`` through ``torch.amp``, and ``wrap_scaler``: on a CPU, with bfloat16 and with float16."""

from __future__ import annotations

import copy
import logging
from pathlib import Path
from typing import Any

import pytest
import torch
from digits_trials import DigitsTrial, LocalRun
from torch import nn

from det_native.errors import ArgumentError
from det_native.pytorch import LRScheduler, PyTorchTrialContext
from det_native.schema.environment import TrialEnvironment

pytestmark = pytest.mark.slow


class Watched(nn.Module):
    """A layer and a batch norm that note in which type they compute."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 3)
        self.norm = nn.BatchNorm1d(3)
        self.types: list[torch.dtype] = []

    def forward(self, inputs: torch.Tensor, *, fails: bool = False) -> dict[str, torch.Tensor]:
        hidden = self.layer(inputs)
        self.types.append(hidden.dtype)
        if fails:
            raise ZeroDivisionError
        return {"output": self.norm(hidden)}


class Made:
    """A context with one model and its optimizer, and batches of training that run as a controller runs them."""

    def __init__(self, model: nn.Module | None = None, **optimizations: Any) -> None:
        torch.manual_seed(1)
        self.context = PyTorchTrialContext(TrialEnvironment(config={"optimizations": optimizations}, hparams={}))
        self.model = self.context.wrap_model(model or nn.Linear(2, 1, bias=False))
        self.optimizer = self.context.wrap_optimizer(torch.optim.SGD(self.model.parameters(), lr=0.5))
        self.batches = 0

    def amp(self, **arguments: Any) -> Made:
        self.context.configure_apex_amp(self.model, self.optimizer, **arguments)
        return self

    def train(self, body: Any) -> Any:
        self.context.enter_batch(self.batches)
        self.batches += 1
        return self.context.around_training(lambda batch, epoch_idx, batch_idx: body())(None, 0, 0)

    def step(self, *losses: torch.Tensor, clip: Any = None) -> None:
        for loss in losses:
            self.context.backward(loss)
        self.context.step_optimizer(self.optimizer, clip)


def test_o0_is_float32() -> None:
    made = Made(Watched()).amp(opt_level="O0")
    outputs = made.train(lambda: made.model(torch.ones(5, 4)))
    assert outputs["output"].dtype is torch.float32
    assert made.model.types == [torch.float32]
    assert made.context.scalers == []


def test_o1_casts_in_the_whole_batch_and_keeps_float32_weights() -> None:
    made = Made(Watched()).amp()
    assert made.train(lambda: torch.ones(2, 2) @ torch.ones(2, 2)).dtype is torch.bfloat16
    made.train(lambda: made.step(made.model(torch.randn(5, 4))["output"].float().pow(2).sum()))
    evaluated = made.context.around_evaluation(lambda batch: made.model(batch)["output"] @ torch.ones(3, 3))
    assert evaluated(torch.randn(5, 4)).dtype is torch.bfloat16
    assert made.model.types == [torch.bfloat16] * 2
    assert made.model.layer.weight.dtype is torch.float32
    assert not torch.is_autocast_enabled("cpu")


def test_a_forward_after_a_step_of_the_same_batch_sees_the_new_weights() -> None:
    made = Made().amp()

    def two_steps() -> tuple[float, float]:
        first = made.model(torch.ones(1, 2))
        made.step(first.sum())
        return first.item(), made.model(torch.ones(1, 2)).item()

    before, after = made.train(two_steps)
    assert after == pytest.approx(before - 1.0, abs=0.02)


def test_o2_casts_in_the_forwards_only() -> None:
    made = Made(Watched()).amp(opt_level="O2", verbosity=0)
    outputs = made.train(lambda: (made.model(torch.randn(5, 4))["output"], torch.ones(2, 2) @ torch.ones(2, 2)))
    assert [output.dtype for output in outputs] == [torch.float32, torch.float32]
    assert made.model.types == [torch.bfloat16]
    with pytest.raises(ZeroDivisionError):
        made.train(lambda: made.model(torch.ones(5, 4), fails=True))
    assert not torch.is_autocast_enabled("cpu")
    other = copy.deepcopy(made.model)
    with torch.no_grad():
        other.layer.weight.zero_()
    assert other(torch.randn(5, 4))["output"].abs().sum() < 1e-3
    assert other.types[-1] is torch.bfloat16
    made.train(lambda: made.step(made.model(torch.randn(5, 4))["output"].pow(2).sum()))


@pytest.mark.parametrize(("keep", "norm"), [(None, torch.bfloat16), ("True", torch.float32)])
def test_o3_casts_the_weights(keep: Any, norm: torch.dtype) -> None:
    made = Made(Watched()).amp(opt_level="O3", keep_batchnorm_fp32=keep)
    assert made.model.layer.weight.dtype is torch.bfloat16
    assert made.model.norm.weight.dtype is norm
    before = made.model.layer.weight.detach().clone()
    made.train(lambda: made.step(made.model(torch.randn(5, 4))["output"].pow(3).sum()))
    assert made.model(torch.randn(5, 4))["output"].dtype is torch.float32
    assert not torch.equal(made.model.layer.weight, before)


def test_what_can_be_overridden() -> None:
    half = Made(Watched()).amp(cast_model_type=torch.float16, cast_model_outputs=torch.float32)
    assert half.train(lambda: half.model(torch.randn(5, 4)))["output"].dtype is torch.float32
    assert half.model.types == [torch.float16]
    assert half.context.scalers[0].get_scale() == 2.0**16
    plain = Made(Watched()).amp(cast_model_type=torch.float32)
    plain.train(lambda: plain.model(torch.randn(5, 4)))
    assert plain.model.types == [torch.float32]
    patched = Made(Watched()).amp(opt_level="O0", patch_torch_functions=True)
    patched.train(lambda: patched.model(torch.randn(5, 4)))
    assert patched.model.types == [torch.bfloat16]
    off = Made(Watched()).amp(enabled=False)
    off.train(lambda: off.model(torch.randn(5, 4)))
    assert off.model.types == [torch.float32]


@pytest.mark.parametrize("scale", [128.0, "128.0"])
def test_a_static_scale_is_taken_out_before_clipping_and_stepping(scale: Any) -> None:
    made = Made().amp(opt_level="O0", loss_scale=scale)
    before = made.model.weight.detach().clone()
    seen: list[Any] = []
    made.train(
        lambda: made.step(
            made.model(torch.ones(1, 2)).sum(), clip=lambda parameters: seen.append(parameters[0].grad[0])
        )
    )
    assert seen[0].tolist() == [1.0, 1.0]
    torch.testing.assert_close(made.model.weight, before - 0.5)
    made.train(lambda: made.step(made.model(torch.full((1, 2), torch.inf)).sum()))
    torch.testing.assert_close(made.model.weight, before - 0.5)
    assert made.context.scalers[0].get_scale() == 128.0


def test_a_dynamic_scale_falls_at_an_overflow_within_its_bounds() -> None:
    made = Made().amp(opt_level="O0", loss_scale="dynamic", max_loss_scale=8.0, min_loss_scale=3.0)
    (scaler,) = made.context.scalers
    before = made.model.weight.detach().clone()
    scales = [scaler.get_scale()]
    for _ in range(3):
        made.train(lambda: made.step(made.model(torch.full((1, 2), torch.inf)).sum()))
        scales.append(scaler.get_scale())
    assert scales == [8.0, 4.0, 3.0, 3.0]
    assert torch.equal(made.model.weight, before)
    scaler.set_growth_interval(1)
    for _ in range(3):
        made.train(lambda: made.step(made.model(torch.ones(1, 2)).sum()))
    assert scaler.get_scale() == 8.0
    torch.testing.assert_close(made.model.weight, before - 1.5)


def test_each_loss_has_its_own_scale() -> None:
    made = Made().amp(opt_level="O0", loss_scale="dynamic", num_losses=2)
    before = made.model.weight.detach().clone()
    first, second = made.context.scalers

    def body(value: float) -> None:
        output = made.model(torch.ones(1, 2)).sum()
        made.step(output * 2.0, made.model(torch.full((1, 2), value)).sum())

    made.train(lambda: body(3.0))
    torch.testing.assert_close(made.model.weight, before - 2.5)
    made.train(lambda: body(torch.inf))
    assert (first.get_scale(), second.get_scale()) == (2.0**16, 2.0**15)
    torch.testing.assert_close(made.model.weight, before - 2.5)
    made.train(lambda: body(1.0))
    torch.testing.assert_close(made.model.weight, before - 4.0)
    with pytest.raises(ArgumentError, match=r"backward number 3 of the batch.*num_losses=2"):
        made.train(lambda: made.step(*(made.model(torch.ones(1, 2)).sum() for _ in range(3))))


def test_one_scale_serves_several_losses_and_aggregated_batches() -> None:
    made = Made(aggregation_frequency=2).amp(opt_level="O0", loss_scale="dynamic")
    before = made.model.weight.detach().clone()
    for value in (1.0, 3.0):
        made.train(
            lambda value=value: made.step(*(made.model(torch.full((1, 2), value)).sum() for _ in range(2)))  # type: ignore[misc]
        )
    torch.testing.assert_close(made.model.weight, before - 2.0)


def test_lists_come_back_as_lists_and_the_choice_is_said(caplog: pytest.LogCaptureFixture) -> None:
    made = Made()
    with caplog.at_level(logging.INFO):
        models, optimizers = made.context.configure_apex_amp([made.model], [made.optimizer], opt_level="O2")
    assert (models, optimizers) == ([made.model], [made.optimizer])
    assert "O2: float32 weights, the models' forwards autocast to bfloat16, the loss is not scaled" in caplog.text


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"opt_level": "O4"}, 'opt_level must be "O0"'),
        ({"cast_model_type": torch.int8}, "cast_model_type must be"),
        ({"cast_model_outputs": "half"}, "cast_model_outputs must be"),
        ({"keep_batchnorm_fp32": "yes"}, "keep_batchnorm_fp32 must be True"),
        ({"keep_batchnorm_fp32": False, "opt_level": "O2"}, "keep_batchnorm_fp32=False contradicts opt_level O2"),
        ({"master_weights": False}, "master_weights=False contradicts opt_level O1"),
        ({"master_weights": True, "opt_level": "O3"}, "use O2"),
        ({"loss_scale": "large"}, "loss_scale must be a positive number"),
        ({"loss_scale": -1}, "loss_scale must be a positive number"),
        ({"loss_scale": 2.0, "opt_level": "O3"}, "contradicts opt_level O3"),
        ({"num_losses": 0}, "num_losses must be"),
    ],
)
def test_arguments_without_a_meaning_are_refused(arguments: dict[str, Any], words: str) -> None:
    with pytest.raises(ArgumentError, match=words):
        Made().amp(**arguments)


def test_the_order_of_the_calls_is_checked() -> None:
    made = Made()
    with pytest.raises(ArgumentError, match=r"models=.*Linear that is not wrapped: call context.wrap_model\(\) first"):
        made.context.configure_apex_amp(nn.Linear(1, 1), made.optimizer)
    with pytest.raises(ArgumentError, match=r"optimizers=.*SGD that is not wrapped"):
        made.context.configure_apex_amp(made.model, torch.optim.SGD(made.model.parameters(), lr=1.0))
    made.amp()
    with pytest.raises(ArgumentError, match="call it once"):
        made.amp()
    with pytest.raises(ArgumentError, match="use one of them"):
        made.context.wrap_scaler(torch.amp.GradScaler("cpu"))
    late = made.context.wrap_optimizer(torch.optim.SGD(made.model.parameters(), lr=1.0))
    with pytest.raises(ArgumentError, match=r"not given to configure_apex_amp\(\)"):
        made.context.wrap_lr_scheduler(torch.optim.lr_scheduler.StepLR(late, 1), LRScheduler.StepMode.STEP_EVERY_EPOCH)
    made.context.backward(made.model(torch.ones(1, 2)).sum())
    with pytest.raises(ArgumentError, match="leave out scaler="):
        made.context.step_optimizer(made.optimizer, scaler=torch.amp.GradScaler("cpu"))


def test_a_scaler_of_ones_own() -> None:
    made = Made()
    scaler = torch.amp.GradScaler("cpu", init_scale=64.0)
    assert made.context.wrap_scaler(scaler) is scaler
    before = made.model.weight.detach().clone()
    seen: list[Any] = []

    def body(value: float) -> None:
        with torch.autocast("cpu", dtype=torch.float16):
            loss = made.model(torch.full((1, 2), value)).sum()
        made.context.backward(scaler.scale(loss))
        made.context.step_optimizer(
            made.optimizer, clip_grads=lambda parameters: seen.append(parameters[0].grad[0, 0].item()), scaler=scaler
        )
        scaler.update()

    made.train(lambda: body(1.0))
    torch.testing.assert_close(made.model.weight, before - 0.5)
    made.train(lambda: body(1e9))
    assert scaler.get_scale() == 32.0
    torch.testing.assert_close(made.model.weight, before - 0.5)
    assert seen[0] == 1.0
    with pytest.raises(ArgumentError, match="GradScaler, not int"):
        made.context.wrap_scaler(3)
    with pytest.raises(ArgumentError, match="wrapped already"):
        made.context.wrap_scaler(scaler)
    with pytest.raises(ArgumentError, match=r"after wrap_scaler\(\)"):
        made.amp()


@pytest.mark.parametrize("arguments", [{"opt_level": "O1"}, {"opt_level": "O2", "cast_model_type": torch.float16}])
def test_a_trial_learns_with_mixed_precision(tmp_path: Path, arguments: dict[str, Any]) -> None:
    class Mixed(DigitsTrial):
        def __init__(self, context: PyTorchTrialContext) -> None:
            super().__init__(context)
            context.configure_apex_amp([self.model, self.other], [self.optimizer, self.adam], **arguments)

    run = LocalRun(tmp_path, batches=240)
    run.run(Mixed)
    assert run.reporter.validation_rows[-1].metrics["accuracy"] > 0.85
