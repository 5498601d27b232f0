"""Programs in which a training changes values: drawn ways of changing, in drawn places, read one by one afterwards.

A change is one way (``T.append(step)``) in one place (an attribute): `T` stands for the expression that leads to the
value. A program makes all its values, trains once while every step changes each of them, and reads them.
"""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from itertools import product
from typing import Literal

Framework = Literal["torch loop", "torch fit", "keras fit", "keras step", "estimator"]
Mode = Literal["plain", "local", "cluster", "killed"]


@dataclass(frozen=True)
class Way:
    """How a value is changed.

    Attributes
    ----------
    name : str
    first : str
        An expression that makes the value.
    change : str
        Statements on `T`, with `step` counting from 0.
    read : str
        An expression on `T` whose ``repr`` is compared.
    """

    name: str
    first: str
    change: str
    read: str = "T"


@dataclass(frozen=True)
class Place:
    """Where a value is held.

    Attributes
    ----------
    name : str
    make : str
        Statements that put `FIRST` there; `@` is the number of the change.
    expression : str
        What `T` stands for.
    """

    name: str
    make: str
    expression: str


WAYS = [
    Way("assigned", "0", "T = step + 1"),
    Way("augmented", "1.5", "T += step"),
    Way("appended", "[]", "T.append(step)"),
    Way("by function", "[]", "note(T, step)"),
    Way("by map", "[]", "list(map(T.append, [step]))"),
    Way("by exec", "[]", "exec('x.append(step)', {'x': T, 'step': step})"),
    Way("by thread", "[]", "in_thread(T.append, step)"),
    Way("shuffled", "[*range(6)]", "random.Random(step).shuffle(T)"),
    Way("heap", "[3, 4]", "heapq.heappush(T, -step)"),
    Way("bisect", "[1, 5]", "bisect.insort(T, step)"),
    Way("sliced", "[1, 2, 3]", "T[1:] = [step] * (step + 1)"),
    Way("cleared", "[1, 2]", "T.clear()"),
    Way("sorted by key", "[3, 1, 2]", "T.sort(key=lambda value: value * (-1) ** step)"),
    Way("item", "{}", "T[step] = [step]"),
    Way("item deleted", "{0: 'a', 1: 'b', 2: 'c'}", "T.pop(step, None)"),
    Way("default", "collections.defaultdict(list)", "T[step % 2].append(step)", "dict(T)"),
    Way("counter", "collections.Counter()", "T.update('ab'[: step + 1])", "sorted(T.items())"),
    Way("ordered", "collections.OrderedDict(a=1, b=2)", "T.move_to_end('a', last=bool(step % 2))", "list(T)"),
    Way("deque", "collections.deque(maxlen=2)", "T.append(step)", "list(T)"),
    Way("set", "set()", "T.add(step)", "sorted(T)"),
    Way("frozen", "frozenset()", "T = T | {step}", "sorted(T)"),
    Way("tuple", "()", "T += (step,)"),
    Way("text", "'a'", "T += str(step)"),
    Way("bytes", "bytearray(b'ab')", "T.extend(bytes([step]))"),
    Way("queue", "queue.Queue()", "T.put(step)", "list(T.queue)"),
    Way("printed", "io.StringIO()", "print(step, file=T)", "T.getvalue()"),
    Way("object", "Box()", "T.value = step", "T.value"),
    Way("setattr", "Box()", "setattr(T, f'v{step}', step)", "sorted(vars(T))"),
    Way("operator", "Rows()", "T << step", "T.rows"),
    Way("called", "Rows()", "T(step)", "T.rows"),
    Way("slot", "Slotted()", "T.value += step", "T.value"),
    Way("nested", "{'a': [{'b': []}]}", "T['a'][0]['b'].append(step)"),
    Way("cycle", "loop_of_itself()", "T['self']['n'] = step", "(T['self'] is T, T['n'])"),
    Way("random", "random.Random(1)", "T.random()", "T.random()"),
    Way("iterator", "iter([*range(9)])", "next(T)", "next(T)"),
    Way("count", "itertools.count()", "next(T)", "next(T)"),
    Way("array", "np.zeros(3)", "np.copyto(T, step + 1.0)", "T.tolist()"),
    Way("array at", "np.zeros(4)", "np.add.at(T, [step % 4], 1)", "T.tolist()"),
    Way("array grown", "np.zeros(1)", "T = np.append(T, step)", "T.tolist()"),
    Way("array view", "np.zeros((2, 3))", "T[:, 1][:] = step + 1", "T.tolist()"),
    Way("array of objects", "np.array([None, []], dtype=object)", "T[1].append(step)", "T.tolist()"),
    Way("generator", "np.random.default_rng(3)", "T.random()", "float(T.random())"),
    Way("table", "pd.DataFrame({'v': [0, 0, 0]})", "T.iloc[step % 3] = step + 5", "T.v.tolist()"),
    Way("table column", "pd.DataFrame({'v': [1, 2]})", "T[f'c{step}'] = step", "T.to_dict('list')"),
    Way("series", "pd.Series([1.0, 2.0])", "T[0] += step", "T.tolist()"),
    Way("new object", "None", "T = Rows(); T(step)", "T.rows"),
    Way("new function", "None", "T = lambda value: value + len('ab')", "T(1)"),
    Way("new class", "None", "T = type('Made', (Rows,), {'extra': step})", "(T().rows, T.extra)"),
    Way("exception", "None", "T = ValueError(step)", "repr(T)"),
    Way("named tuple", "Pair([], 1)", "T.first.append(step)", "T"),
    Way("data class", "Data()", "T.items.append(step); T.n += 1", "T"),
]

TORCH_WAYS = [
    Way("tensor", "torch.zeros(2)", "T.add_(step + 1)", "T.tolist()"),
    Way("tensor out", "torch.zeros(1)", "torch.add(T, 1, out=T)", "T.tolist()"),
    Way("tensor made", "torch.zeros(1)", "T = torch.full((2,), float(step))", "T.tolist()"),
    Way("layer", "torch.nn.Linear(1, 1)", "torch.nn.init.constant_(T.weight, step + 2.0)", "T.weight.item()"),
    Way("frozen layer", "torch.nn.Linear(1, 1)", "T.weight.requires_grad_(step % 2 == 1)", "T.weight.requires_grad"),
    Way("gradient", "torch.nn.Linear(1, 1)", "T(torch.ones(1, 1)).sum().backward()", "T.weight.grad.item()"),
    Way(
        "torch generator",
        "torch.Generator().manual_seed(3)",
        "torch.rand(1, generator=T)",
        "torch.rand(1, generator=T).item()",
    ),
    Way("buffer grown", "torch.nn.BatchNorm1d(2)", "T.running_mean = torch.ones(step + 3)", "T.running_mean.tolist()"),
    Way("averages", "{'w': torch.zeros(2)}", "T['w'] = 0.5 * T['w'] + step", "T['w'].tolist()"),
]

KERAS_WAYS = [
    Way("variable", "tf.Variable(0.0)", "T.assign_add(1.0 + step)", "float(T)"),
    Way(
        "teacher",
        "dense()",
        "T.set_weights([weight + step + 1 for weight in T.get_weights()])",
        "[w.tolist() for w in T.get_weights()]",
    ),
    Way("trainable", "dense()", "T.trainable = step % 2 == 0", "T.trainable"),
    Way("metric", "keras.metrics.Mean()", "T.update_state(float(step))", "float(T.result())"),
    Way("tensorflow tensor", "tf.constant(1.0)", "T = T + step", "float(T)"),
]

PLACES = [
    Place("global", "g@ = FIRST", "g@"),
    Place("attribute", "box@ = Box(); box@.value = FIRST", "box@.value"),
    Place("item", "d@ = {'k': FIRST}", "d@['k']"),
    Place("class", "class K@: value = FIRST", "K@.value"),
    Place("module", "helper_of_changes.v@ = FIRST", "helper_of_changes.v@"),
    Place("closure", "", ""),
    Place("data", "data.v@ = FIRST", "data.v@"),
    Place("local", "", ""),
]

HEAD = """
import bisect, collections, dataclasses, heapq, io, itertools, os, queue, random, threading
import numpy as np, pandas as pd
import helper_of_changes
class Box: pass
class Rows:
    def __init__(self): self.rows = []
    def __call__(self, value): self.rows.append(value)
    def __lshift__(self, value): self.rows.append(value)
class Slotted:
    __slots__ = ("value",)
    def __init__(self): self.value = 0
Pair = collections.namedtuple("Pair", "first second")
@dataclasses.dataclass
class Data:
    items: list = dataclasses.field(default_factory=list)
    n: int = 0
def note(rows, value): rows.append(value)
def in_thread(call, value):
    thread = threading.Thread(target=call, args=(value,)); thread.start(); thread.join()
def loop_of_itself():
    made = {"n": 0}; made["self"] = made; return made
def killed_once(step):
    if step == 2 and not os.path.exists(os.environ.get("CHANGES_KILLED", "/")):
        open(os.environ["CHANGES_KILLED"], "w").close(); os.kill(os.getpid(), 9)
"""

_TORCH = """
import torch
class Numbers(torch.utils.data.Dataset):
    def __len__(self): return 4
    def __getitem__(self, index): return torch.full((2,), float(index)), torch.ones(1)
data = Numbers()
torch.manual_seed(1); net = torch.nn.Linear(2, 1); opt = torch.optim.SGD(net.parameters(), 0.01)
loader = torch.utils.data.DataLoader(data, batch_size=4)
"""
_KERAS = """
import tensorflow as tf
from tensorflow import keras
class Numbers(keras.utils.Sequence):
    def __len__(self): return 1
    def __getitem__(self, index): return np.ones((4, 2), "f"), np.ones((4, 1), "f")
data = Numbers()
def dense(): return keras.Sequential([keras.layers.Input((2,)), keras.layers.Dense(1, kernel_initializer="ones")])
keras.utils.set_random_seed(1)
"""
#: By framework: what comes before the values, and the training, in which CHANGES stands for calls with `step`.
TRAININGS: dict[str, tuple[str, str]] = {
    "torch loop": (
        _TORCH,
        """
context = det.experimental.pytorch.init(CONFIG)  #!det
net, opt, loader = context.wrap(net, opt, loader)  #!det
#!plain for step in range(4):
for step in context.epochs(4):  #!det
    for x, y in loader:
        loss = (net(x) - y).pow(2).mean(); opt.zero_grad(); loss.backward(); opt.step()
    CHANGES
    context.report(loss=loss)  #!det
    KILL
""",
    ),
    "torch fit": (
        _TORCH,
        """
context = det.experimental.pytorch.init(CONFIG)  #!det
net, opt = context.wrap_model(net), context.wrap_optimizer(opt)  #!det
def train_batch(batch, epoch_idx, batch_idx):
    x, y = batch
    loss = (net(x) - y).pow(2).mean()
    context.backward(loss); context.step_optimizer(opt)  #!det
    #!plain opt.zero_grad(); loss.backward(); opt.step()
    step = batch_idx
    CHANGES
    KILL
    return {"loss": loss}
#!plain for step in range(4): train_batch(next(iter(loader)), step, step)
context.fit(loader, train_batch=train_batch, epochs=4)  #!det
""",
    ),
    "keras fit": (
        _KERAS,
        """
context = det.experimental.keras.init(CONFIG)  #!det
model = dense()
model = context.wrap_model(model)  #!det
model.compile("sgd", "mse")
class Changing(keras.callbacks.Callback):
    def on_epoch_end(self, step, logs=None):
        CHANGES
        KILL
history = model.fit(data, epochs=4, verbose=0, callbacks=[Changing()])
""",
    ),
    "keras step": (
        _KERAS,
        """
context = det.experimental.keras.init(CONFIG)  #!det
class Stepping(keras.Model):
    def __init__(self):
        super().__init__(); self.inner = keras.layers.Dense(1, kernel_initializer="ones"); self.steps = 0
    def call(self, x): return self.inner(x)
    def train_step(self, batch):
        logs = super().train_step(batch); step, self.steps = self.steps, self.steps + 1
        CHANGES
        KILL
        return logs
model = Stepping()
model = context.wrap_model(model)  #!det
model.compile("sgd", "mse", run_eagerly=True)
history = model.fit(data, epochs=4, verbose=0)
""",
    ),
}


@dataclass(frozen=True)
class Change:
    """A way in a place.

    Attributes
    ----------
    number : int
        Tells it from others of its program.
    """

    number: int
    way: Way
    place: Place

    @property
    def title(self) -> str:
        """What messages call it."""
        return f"{self.way.name} / {self.place.name} ({self.number})"

    def make(self) -> str:
        """Return the statements that make the value, and what changes and reads it."""
        n, way, place = self.number, self.way, self.place
        if place.name in ("closure", "local"):
            return (
                f"def make{n}():\n    value = {way.first}\n    def change{n}(step):\n        nonlocal value\n"
                f"        {self._on('value', way.change)}\n    def read{n}(): return {self._on('value', way.read)}\n"
                f"    return change{n}, read{n}\nchange{n}, read{n} = make{n}()"
            )
        made = place.make.replace("@", str(n)).replace("FIRST", way.first)
        target = place.expression.replace("@", str(n))
        rebinds = f"    global {target}\n" if target.isidentifier() else ""
        return f"{made}\ndef change{n}(step):\n{rebinds}    {self._on(target, way.change)}"

    def read(self) -> str:
        """Return the expression that is compared."""
        if self.place.name in ("closure", "local"):
            return f"read{self.number}()"
        return self._on(self.place.expression.replace("@", str(self.number)), self.way.read)

    @staticmethod
    def _on(target: str, text: str) -> str:
        words = text.replace("T.", "\0.").replace("T[", "\0[").replace("T(", "\0(")
        out, i = [], 0
        while i < len(words):
            before, after = words[i - 1 : i], words[i + 1 : i + 2]
            if words[i] == "T" and not (before.isalnum() or before == "_") and not (after.isalnum() or after == "_"):
                out.append("\0")
            else:
                out.append(words[i])
            i += 1
        return "".join(out).replace("\0", target)


def all_changes(framework: Framework) -> list[tuple[Way, Place]]:
    """Return every way in every place, for a framework."""
    further = TORCH_WAYS if framework.startswith("torch") else KERAS_WAYS
    return [*product([*WAYS, *further], PLACES)]


def cells_of(framework: Framework, changes: list[Change], mode: Mode) -> tuple[list[str], str]:
    """Return the cells of a program before its training, and the training."""
    before, training = TRAININGS[framework]
    local = [change for change in changes if change.place.name == "local"]
    calls = [f"change{change.number}(step)" for change in changes]
    lines = []
    for line in training.strip("\n").splitlines():
        if line.endswith("#!det"):
            lines += [] if mode == "plain" else [line.removesuffix("#!det").rstrip()]
        elif line.lstrip().startswith("#!plain "):
            lines += [line.replace("#!plain ", "", 1)] if mode == "plain" else []
        elif line.strip() == "CHANGES":
            lines += [line.replace("CHANGES", call) for call in calls]
        elif line.strip() == "KILL":
            lines += [line.replace("KILL", "killed_once(step)")] if mode == "killed" else []
        else:
            lines.append(line)
    config = {
        "searcher": {"name": "single", "metric": "loss", "max_length": {"epochs": 4}},
        "hyperparameters": {"global_batch_size": 4},
        "min_checkpoint_period": {"epochs": 1},
        "max_restarts": 1,
    }
    text = "\n".join(lines).replace("init(CONFIG)", f"init({config!r}{', local=True' if mode == 'local' else ''})")
    if local:  # values that only variables of the function around the training lead to
        made = textwrap.indent("\n".join(change.make() for change in local), "    ")
        names = ", ".join(f"read{change.number}" for change in local)
        text = f"def train():\n{made}\n{textwrap.indent(text, '    ')}\n    return {names}, 0\n{names}, _ = train()"
        if framework == "torch loop":
            text = text.replace("def train():\n", "def train(net=net, opt=opt, loader=loader):\n")
        if framework == "torch fit":
            text = text.replace("def train():\n", "def train(net=net, opt=opt):\n")
    cells = [HEAD if mode == "plain" else f"import det_native as det\n{HEAD}", before]
    cells += ["\n".join(change.make() for change in changes if change not in local)]
    return cells, text
