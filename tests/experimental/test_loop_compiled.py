"""``optimizations.torch_compile`` with ``det.experimental.pytorch.init()``, in ``fit()`` and in a loop of one's own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from loop_run import LoopRun  # noqa: E402 (after the check for torch)
from native_line import CONFIG, Line, loader_of, torch_generator, torch_is_warm  # noqa: E402, F401 (autouse)

import det_native as det  # noqa: E402
from det_native.errors import TrialDefinitionError  # noqa: E402
from det_native.schema.states import ExperimentState  # noqa: E402

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("recorded")]

TRACED = {"optimizations": {"torch_compile": {"backend": "aot_eager"}}}
WHOLE = {"optimizations": {"torch_compile": {"backend": "eager", "fullgraph": True}}}


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    """Forget what other tests have compiled."""
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    yield
    torch._dynamo.reset()


def test_a_loop_trains_compiled_models_as_others(tmp_path: Path) -> None:
    plain = LoopRun(tmp_path / "plain", dropout=0.0)
    plain.train()
    assert plain.graphs() == 0
    compiled = LoopRun(tmp_path / "compiled", dropout=0.0, **TRACED)
    compiled.train()
    assert compiled.graphs() >= 2  # for training, and for validation
    for name, value in plain.result()["model"].items():
        assert torch.allclose(value, compiled.result()["model"][name], atol=1e-5)


@pytest.mark.parametrize("way", [pytest.param("fit", marks=pytest.mark.long), "loop"])
def test_a_checkpoint_of_compiled_models_loads_as_any_other(way: str) -> None:
    line = Line(CONFIG | TRACED)
    if way == "fit":
        line.fit()
    else:
        for batch in line.loop():
            line.context.report(loss=line.step(batch))
    assert int(torch._dynamo.utils.counters["stats"]["unique_graphs"]) >= 2
    loaded = line.context.experiment.top_checkpoint().load()
    assert [*loaded.state_dict()] == ["weight", "bias"]


class Uncompilable(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(1, 1)

    def forward(self, x: Any) -> Any:
        torch._dynamo.graph_break()
        return self.layer(x)


class WithUncompilable(Line):
    def __init__(self) -> None:
        super().__init__(CONFIG | WHOLE)
        self.model = self.context.wrap_model(Uncompilable())
        self.optimizer = self.context.wrap_optimizer(torch.optim.SGD(self.model.parameters(), lr=0.1))


@pytest.mark.long
def test_what_the_compiler_refuses_is_said_where_the_loop_calls_the_model() -> None:
    line = WithUncompilable()

    def train() -> None:
        for batch in line.context.train(loader_of(), epochs=1):
            line.step(batch)

    with pytest.raises(TrialDefinitionError, match=r"(?s)cannot be compiled, which optimizations\.torch_compile asks"):
        train()
    assert det.last_experiment().state is ExperimentState.ERROR


def test_what_the_compiler_refuses_is_said_by_fit() -> None:
    with pytest.raises(TrialDefinitionError, match=r"(?s)cannot be compiled, which optimizations\.torch_compile asks"):
        WithUncompilable().alone()
