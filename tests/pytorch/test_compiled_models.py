"""``optimizations.torch_compile``: the same training; models, checkpoints and continuations stay what they are."""

from __future__ import annotations

import functools
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from digits_trials import DigitsTrial, Full, LocalRun, same
from torch import nn

from det_native.errors import MissingDependencyError, TrialDefinitionError, UnsupportedFeatureError
from det_native.pytorch import PyTorchTrialContext

pytestmark = pytest.mark.slow

# More than one thread would be processes of their own, which live as long as this one.
COMPILED: dict[str, Any] = {"torch_compile": {"options": {"compile_threads": 1}}}
# Everything but the machine code, which takes g++ seconds for each piece.
TRACED: dict[str, Any] = {"torch_compile": {"backend": "aot_eager"}}

Rows = list[tuple[int, dict[str, Any]]]


@pytest.fixture(scope="module", autouse=True)
def tracer() -> Iterator[None]:
    """Let the compiler do before the first test what it does once: threads, folders, variables of the process."""
    before = dict(os.environ)
    torch.compile(lambda value: value * 2 + 1, backend="aot_eager")(torch.ones(3))
    yield
    for name in os.environ.keys() - before.keys():
        del os.environ[name]


@pytest.fixture(scope="module")
def inductor(tracer: None) -> None:
    """The same for machine code, which takes g++ some seconds."""
    torch.compile(lambda value: value * 2 + 1, options={"compile_threads": 1})(torch.ones(3))


@pytest.fixture(autouse=True)
def _compiler(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Keep what is compiled in one folder of the tests', and forget it in this process."""
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path_factory.getbasetemp() / "inductor"))
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    yield
    torch._dynamo.reset()


def graphs() -> int:
    """Return how many pieces of models were compiled."""
    return int(torch._dynamo.utils.counters["stats"]["unique_graphs"])


class Plain(DigitsTrial):
    """Nothing random in the models: the compiler draws other numbers than torch does."""

    def __init__(self, context: PyTorchTrialContext) -> None:
        super().__init__(context)
        self.model[3].p = 0.0  # type: ignore[index, union-attr]


class Own(nn.Module):
    """A model with a method and an attribute of its own."""

    scale = 3.0

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(64, 32), nn.Tanh(), nn.Linear(32, 10))

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.scaled(self.layers(images))

    def scaled(self, output: torch.Tensor) -> torch.Tensor:
        return output / self.scale


class WithOwn(Full):
    def __init__(self, context: PyTorchTrialContext) -> None:
        self.context = context
        self.made = self.make_model()
        self.model: Any = context.wrap_model(self.made)
        self.optimizer = context.wrap_optimizer(torch.optim.SGD(self.model.parameters(), lr=0.1))

    def make_model(self) -> nn.Module:
        return Own()

    def train_batch(self, batch: Any, epoch_idx: int, batch_idx: int) -> Any:
        assert self.model is self.made
        assert type(self.model) is Own
        images, labels = batch
        loss = nn.functional.cross_entropy(self.model(images) + self.model.scaled(self.model.layers(images)), labels)
        self.context.backward(loss)
        self.context.step_optimizer(self.optimizer)
        return loss


def models(run: LocalRun) -> list[dict[str, torch.Tensor]]:
    found: list[dict[str, torch.Tensor]] = run.state()["models_state_dict"]
    return found


@pytest.mark.soak
def test_compiled_training_ends_as_it_does_without(tmp_path: Path, inductor: None) -> None:
    plain, compiled = LocalRun(tmp_path / "plain"), LocalRun(tmp_path / "compiled", optimizations=COMPILED)
    plain.run(Plain)
    assert graphs() == 0
    compiled.run(Plain)
    assert graphs() >= 2  # both models, one of which is of a class of torch's own
    for ours, theirs in zip(models(compiled), models(plain), strict=True):
        assert ours.keys() == theirs.keys()
        assert all(torch.allclose(ours[name], theirs[name], rtol=1e-3, atol=1e-4) for name in ours)
    losses = [[row.metrics["loss"] for row in run.reporter.training_rows] for run in (plain, compiled)]
    assert losses[1] == pytest.approx(losses[0], rel=1e-3)
    assert losses[0][0] > 1.5 * losses[0][-1]


def test_a_checkpoint_goes_on_with_and_without_it(tmp_path: Path) -> None:
    for first, second in ((TRACED, {}), ({}, TRACED)):
        run = LocalRun(tmp_path / str(bool(first)), batches=12, optimizations=first)
        run.run(Plain, stop_at=6)
        before = graphs()
        other = LocalRun(tmp_path / str(bool(first)), batches=12, optimizations=second)
        other.run(Plain, resume=run.last())
        assert (graphs() > before) == bool(second)
        assert [row.batch for row in other.reporter.training_rows] == list(range(7, 13))
        assert not any(name.startswith("_orig_mod") for model in models(other) for name in model)
        torch._dynamo.reset()


@functools.cache
def uninterrupted(compiled: bool, batches: int) -> tuple[dict[str, Any], Rows]:
    """Train to the end, and return the last state and the rows: once for each way to compile."""
    with tempfile.TemporaryDirectory() as folder:
        run = LocalRun(Path(folder), batches=batches, optimizations=COMPILED if compiled else TRACED)
        run.run(DigitsTrial)
        return run.state(), rows_of(run)


def rows_of(run: LocalRun) -> Rows:
    return [(row.batch, row.metrics) for row in run.reporter.training_rows]


def test_stopping_changes_nothing(tmp_path: Path) -> None:
    assert_nothing_changed(tmp_path, compiled=False, stop=11, batches=30)


@pytest.mark.long
def test_stopping_later_changes_nothing(tmp_path: Path) -> None:
    assert_nothing_changed(tmp_path, compiled=False, stop=37)


@pytest.mark.parametrize("stop", [pytest.param(11, marks=pytest.mark.long), pytest.param(37, marks=pytest.mark.soak)])
def test_stopping_changes_nothing_of_machine_code(tmp_path: Path, stop: int, inductor: None) -> None:
    assert_nothing_changed(tmp_path, compiled=True, stop=stop)


def assert_nothing_changed(tmp_path: Path, *, compiled: bool, stop: int, batches: int = 60) -> None:
    # An epoch is 24 batches, the last of them a smaller one: compiled for any length, it would change the others' bits.
    state, rows = uninterrupted(compiled, batches)
    parts = LocalRun(tmp_path, batches=batches, optimizations=COMPILED if compiled else TRACED)
    parts.run(DigitsTrial, stop_at=stop)
    torch._dynamo.reset()  # as in another process
    torch.manual_seed(99)
    parts.run(DigitsTrial, resume=parts.last())
    assert graphs() > 0
    assert same(state, parts.state())
    assert rows == rows_of(parts)


@pytest.mark.long
def test_models_keep_their_methods_and_are_compiled_at_their_call(tmp_path: Path) -> None:
    run = LocalRun(tmp_path, optimizations=TRACED, batches=5)
    run.run(WithOwn)
    assert graphs() > 0
    assert [row.batch for row in run.reporter.training_rows] == [1, 2, 3, 4, 5]


class Amp(Plain):
    level = "O1"

    def __init__(self, context: PyTorchTrialContext) -> None:
        super().__init__(context)
        context.configure_apex_amp(context.models, context.optimizers, opt_level=self.level)


class AmpOfModels(Amp):
    level = "O2"


class AmpOfWeights(Amp):
    level = "O3"


@pytest.mark.long
@pytest.mark.parametrize("trial", [Amp, AmpOfWeights])
def test_with_mixed_precision(tmp_path: Path, trial: type[Amp]) -> None:
    plain = LocalRun(tmp_path / "plain", batches=10)
    compiled = LocalRun(tmp_path / "compiled", batches=10, optimizations=TRACED)
    plain.run(trial)
    compiled.run(trial)
    assert graphs() > 0
    losses = [[row.metrics["loss"] for row in run.reporter.training_rows] for run in (plain, compiled)]
    assert losses[1] == pytest.approx(losses[0], rel=0.1)


def test_mixed_precision_by_model_is_refused_in_words(tmp_path: Path) -> None:
    with pytest.raises(TrialDefinitionError, match='use opt_level="O1" there, or leave the field out'):
        LocalRun(tmp_path, optimizations=TRACED).run(AmpOfModels)
    assert DigitsTrial.done == 0


class Uncompilable(Own):
    def forward(self, images: torch.Tensor) -> torch.Tensor:
        torch._dynamo.graph_break()
        return super().forward(images)


class WithUncompilable(WithOwn):
    def make_model(self) -> nn.Module:
        return Uncompilable()

    def train_batch(self, batch: Any, epoch_idx: int, batch_idx: int) -> dict[str, Any]:
        return {"loss": self.model(batch[0]).sum()}


class WrongShapes(WithOwn):
    def train_batch(self, batch: Any, epoch_idx: int, batch_idx: int) -> dict[str, Any]:
        return {"loss": self.model(batch[0][:, :5]).sum()}


@pytest.mark.long
def test_what_the_compiler_refuses_is_said_with_the_way_out(tmp_path: Path) -> None:
    run = LocalRun(tmp_path, optimizations={"torch_compile": {"fullgraph": True, "backend": "eager"}})
    with pytest.raises(
        TrialDefinitionError, match=r"(?s)WithUncompilable cannot be compiled.*torch_compile.*Without"
    ) as told:
        run.run(WithUncompilable)
    assert "graph_break" in str(told.value)
    assert run.reporter.training_rows == []


def test_an_error_of_the_model_is_not_the_compilers(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="must have same reduction dim") as raised:
        LocalRun(tmp_path, optimizations={"torch_compile": {"backend": "eager"}}).run(WrongShapes)
    assert not isinstance(raised.value, TrialDefinitionError)


def test_a_missing_compiler_is_named_before_anything_is_trained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CXX", "no-such-compiler")
    run = LocalRun(tmp_path, optimizations={"torch_compile": True})
    with pytest.raises(MissingDependencyError, match=r"no 'no-such-compiler' here.*or leave the field out"):
        run.run(Plain)
    assert DigitsTrial.done == 0


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"backend": "inducter"}, "inducter"),
        ({"options": {"compile_thread": 1}}, "compile_thread"),
    ],
)
def test_settings_that_torch_does_not_know_are_refused(tmp_path: Path, settings: dict[str, Any], said: str) -> None:
    with pytest.raises(TrialDefinitionError, match=f"(?s)optimizations.torch_compile is not what .*{said}"):
        LocalRun(tmp_path, optimizations={"torch_compile": settings}).run(Plain)
    assert DigitsTrial.done == 0


def test_a_torch_that_would_leave_models_uncompiled_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # As in torch 2.6, where the setting is not known.
    monkeypatch.delitem(torch._dynamo.config._config, "wrap_top_frame")
    with pytest.raises(UnsupportedFeatureError, match="torch_compile needs a newer PyTorch than"):
        LocalRun(tmp_path, optimizations=TRACED).run(Plain)
    assert DigitsTrial.done == 0


class OfManySizes(WithOwn):
    """Has a batch of another size every time, and as many models as it is told, each of another structure."""

    kinds = 1

    def __init__(self, context: PyTorchTrialContext) -> None:
        super().__init__(context)
        self.others = [
            context.wrap_model(nn.Sequential(nn.Linear(64, 3 + more), nn.Tanh())) for more in range(self.kinds - 1)
        ]

    def train_batch(self, batch: Any, epoch_idx: int, batch_idx: int) -> Any:
        images, labels = (part[: batch_idx + 2] for part in batch)
        loss = nn.functional.cross_entropy(self.model(images), labels)
        loss = loss + sum(other(images).sum() for other in self.others)
        self.context.backward(loss)
        self.context.step_optimizer(self.optimizer)
        return loss


class OfTwoKinds(OfManySizes):
    kinds = 2


@pytest.mark.long
def test_after_eight_forms_a_model_goes_on_uncompiled(tmp_path: Path) -> None:
    run = LocalRun(tmp_path, optimizations=TRACED, batches=12)
    limit = torch._dynamo.config.recompile_limit
    run.run(OfManySizes)
    assert graphs() == limit == 8
    assert len(run.reporter.training_rows) == 12
    assert torch._dynamo.config.recompile_limit == limit


@pytest.mark.long
def test_each_further_model_has_eight_forms_more(tmp_path: Path) -> None:
    LocalRun(tmp_path, optimizations=TRACED, batches=7).run(OfTwoKinds)
    assert graphs() >= 14


@pytest.mark.long
def test_with_dynamic_sizes_one_form_is_enough(tmp_path: Path) -> None:
    run = LocalRun(tmp_path, optimizations={"torch_compile": {"backend": "aot_eager", "dynamic": True}}, batches=12)
    run.run(OfManySizes)
    assert graphs() <= 3  # training, validation


@pytest.mark.long
def test_too_many_forms_of_one_that_must_be_whole_are_said_in_words(tmp_path: Path) -> None:
    run = LocalRun(tmp_path, optimizations={"torch_compile": {"fullgraph": True, "backend": "eager"}}, batches=12)
    with pytest.raises(TrialDefinitionError, match=r"(?s)OfManySizes cannot be compiled.*`dynamic: true` compiles for"):
        run.run(OfManySizes)
