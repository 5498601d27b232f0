"""``checkpoint.load()`` of models that ``copy.deepcopy`` refuses, and of those whose class the process has."""

from __future__ import annotations

import copy
import io
import linecache
import subprocess
import sys
import tempfile
import threading
import types
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from det_harness.frameworks.torch.at_home import at_home  # noqa: E402 (after the check for torch)
from det_harness.frameworks.torch.copies import copied  # noqa: E402
from native_line import Line, torch_generator, torch_is_warm  # noqa: E402, F401 (autouse)

from det_native.errors import CheckpointError  # noqa: E402

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:.*weight_norm.* is deprecated:FutureWarning"),
    pytest.mark.usefixtures("recorded"),
]


class Hook:
    """Has a lock, and the model: what it does, it does to that one."""

    def __init__(self, model: Any) -> None:
        self.model = model
        self.lock = threading.Lock()

    def __call__(self, module: Any, inputs: Any, output: Any) -> None:
        with self.lock:
            self.model.calls = self.model.calls + 1


class Odd(torch.nn.Module):
    """What people's models have besides layers."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.utils.weight_norm(torch.nn.Linear(1, 4))
        self.scale = torch.nn.Parameter(torch.ones(4))
        self.tied = [self.scale, {"again": self.scale}]
        self.lock = threading.Lock()
        self.library = torch
        self.calls = 0
        self.steps = (number for number in range(100))
        self.itself = weakref.ref(self)
        self.last: Any = None
        self.bound = self.forward
        self.register_forward_hook(Hook(self))

    def forward(self, x: Any) -> Any:
        with self.lock:
            self.last = (self.layer(x) * self.tied[1]["again"]).sum(1, keepdim=True)
        return self.last


class OddLine(Line):
    def __init__(self, model: Callable[[], Any] = Odd) -> None:
        super().__init__()
        self.odd = self.context.wrap_model(model())
        self.also = self.context.wrap_optimizer(torch.optim.SGD(self.odd.parameters(), lr=0.01))

    def loss(self, batch: Any) -> Any:
        return torch.nn.functional.mse_loss(self.model(batch[0]) + self.odd(batch[0]), batch[1])

    def step(self, batch: Any) -> Any:
        loss = super().step(batch)
        self.context.step_optimizer(self.also)
        return loss


def test_what_cannot_be_copied_is_shared_and_the_rest_is_a_copy() -> None:
    line = OddLine()
    experiment = line.fit()
    line.odd.train()
    line.odd(torch.ones(2, 1))  # its last output has a graph
    with pytest.raises(Exception, match=r"(deepcopy|pickle)"):
        copy.deepcopy(line.odd)
    expected = line.odd(torch.ones(2, 1))
    calls = line.odd.calls
    with torch.no_grad():
        line.odd.scale.fill_(9)
    loaded = experiment.checkpoints[-1].load()[1]
    assert type(loaded) is Odd
    assert (loaded.lock, loaded.library) == (line.odd.lock, torch)
    assert loaded.tied[0] is loaded.tied[1]["again"] is loaded.scale
    assert loaded.scale.requires_grad
    assert not loaded.last.requires_grad
    before = loaded.calls
    assert torch.equal(loaded(torch.ones(2, 1)), expected)
    assert loaded.bound.__self__ is loaded
    assert (loaded.calls, line.odd.calls) == (before + 1, calls)
    with torch.no_grad():
        loaded.scale.fill_(3)
    assert line.odd.scale.tolist() == [9] * 4


class Lazy(torch.nn.Sequential):
    def __init__(self) -> None:
        super().__init__(torch.nn.LazyLinear(2), torch.nn.Tanh(), torch.nn.LazyLinear(1))


def test_lazy_layers_get_the_shapes_of_the_checkpoint() -> None:
    line = OddLine(Lazy)
    experiment = line.fit()
    loaded = experiment.checkpoints[-1].load()[1]
    x = torch.ones(2, 1)
    assert torch.equal(loaded(x), line.odd(x))
    fresh, other = Lazy(), torch.nn.Linear(1, 1)
    optimizers = [torch.optim.SGD(other.parameters(), lr=0.1), torch.optim.SGD(fresh.parameters(), lr=0.1)]
    experiment.load_into([other, fresh], optimizers)
    assert fresh[0].in_features == 1
    assert torch.equal(fresh(x), line.odd(x))


def test_the_file_that_a_model_writes_to_is_left_alone(tmp_path: Path) -> None:
    model = torch.nn.Linear(1, 1)
    with tempfile.NamedTemporaryFile(dir=tmp_path) as file:
        model.notes = file
        [made] = copied([model])
        assert made.notes is file
        del made
        assert Path(file.name).exists(), "a copy of what deletes it would have deleted it"


class Closed(torch.nn.Module):
    """Says neither what it is made of nor how it is copied."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(1, 1)

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise TypeError("never")


def test_a_module_that_refuses_to_be_pickled_is_copied_by_its_attributes() -> None:
    model = Closed()
    [made] = copied([model])
    assert torch.equal(made.layer.weight, model.layer.weight)
    assert made.layer.weight is not model.layer.weight


class Same(torch.nn.Linear):
    def __deepcopy__(self, memo: Any) -> Any:
        return self


def test_a_copy_that_would_share_its_weights_is_refused() -> None:
    with pytest.raises(CheckpointError, match=r"The Same cannot be copied .* its weight is in an object"):
        copied([Same(1, 1)])


PROGRAM = """
import enum
import threading
import torch

FACTOR = 2.0

class Kind(enum.Enum):
    WIDE = "wide"

def widened(x):
    return FACTOR * x

class Base(torch.nn.Module):
    def widen(self, x):
        return widened(x) if self.kind is Kind.WIDE else x

class Net(Base):
    def __init__(self):
        super().__init__()
        self.kind = Kind.WIDE
        self.function = widened
        self.lock = threading.Lock()
        self.layer = torch.nn.Linear(1, 1)

    def forward(self, x):
        self.last = self.layer(self.widen(x))
        return self.last
"""


def module_of(source: str, monkeypatch: pytest.MonkeyPatch, file: str = "/nowhere/now.py") -> types.ModuleType:
    """Run a program as the module that this process has by its name."""
    module = types.ModuleType("det_program")
    module.__file__ = file
    monkeypatch.setitem(sys.modules, "det_program", module)
    monkeypatch.setitem(linecache.cache, file, (len(source), None, source.splitlines(keepends=True), file))
    exec(compile(source, file, "exec"), vars(module))  # noqa: S102 (as a cell runs)
    return module


def test_a_replayed_model_is_one_of_the_class_that_is_here(monkeypatch: pytest.MonkeyPatch) -> None:
    replayed = module_of(PROGRAM, monkeypatch, "/nowhere/then.py")
    here = module_of("\n\n" + PROGRAM, monkeypatch)  # on other lines
    model = replayed.Net()
    expected = model(torch.ones(1, 1))
    [moved] = at_home([model])
    assert type(moved) is here.Net
    assert (moved.kind, moved.function) == (here.Kind.WIDE, here.widened)
    assert moved.lock is model.lock
    assert moved.layer.weight is model.layer.weight
    assert torch.equal(moved(torch.ones(1, 1)), expected)
    stream = io.BytesIO()
    del moved.lock  # which no file can have
    torch.save(moved, stream)
    stream.seek(0)
    assert torch.equal(torch.load(stream, weights_only=False)(torch.ones(1, 1)), expected)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("FACTOR = 2.0", "FACTOR = 3.0"),
        ("return FACTOR * x", "return FACTOR + x"),
        ("self.last = self.layer(self.widen(x))", "self.last = self.layer(x)"),
        ("if self.kind is Kind.WIDE", "if self.kind is not Kind.WIDE"),
        ('WIDE = "wide"', 'WIDE = "other"'),
        ("class Net(Base):", "class Net(torch.nn.Module):"),
        ("FACTOR = 2.0", "FACTOR = threading.Lock()"),
        ("class Net(Base):", "class Other(Base):"),
        ("self.function = widened", "self.function = lambda x: widened(x)"),
    ],
)
def test_a_class_that_does_something_else_by_now_is_not_taken(
    monkeypatch: pytest.MonkeyPatch, old: str, new: str
) -> None:
    replayed = module_of(PROGRAM, monkeypatch, "/nowhere/then.py")
    assert old in PROGRAM
    module_of(PROGRAM.replace(old, new), monkeypatch)
    model = replayed.Net()
    expected = model(torch.ones(1, 1))
    [moved] = at_home([model])
    assert type(moved) is replayed.Net
    assert torch.equal(moved(torch.ones(1, 1)), expected)


SCRIPT = """
import torch, det_native as det
from torch.utils.data import DataLoader, TensorDataset

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(1, 1)

    def forward(self, x):
        self.last = self.layer(x)
        return self.last

x = torch.linspace(-1, 1, 8).reshape(-1, 1)
context = det.experimental.pytorch.init({"searcher": {"metric": "loss"}}, local=True)
model = context.wrap_model(Net())
optimizer = context.wrap_optimizer(torch.optim.SGD(model.parameters(), lr=0.1))
for batch, target in context.train(DataLoader(TensorDataset(x, 2 * x), batch_size=4)):
    loss = torch.nn.functional.mse_loss(model(batch), target)
    context.backward(loss)
    context.step_optimizer(optimizer)
    context.report(loss=loss)
for experiment in (context.experiment, det.experiment(context.experiment.id)):
    loaded = experiment.top_checkpoint().load()
    torch.save(loaded, "saved.pt")
    print(isinstance(loaded, Net), loaded is model, torch.equal(loaded(x), model(x)))
    print(torch.equal(torch.load("saved.pt", weights_only=False)(x), model(x)))
"""


def test_the_program_itself_finds_its_class_in_what_it_loads(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(SCRIPT)
    ran = subprocess.run(
        [sys.executable, "train.py"], cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.splitlines()[-4:] == ["True False True", "True"] * 2
