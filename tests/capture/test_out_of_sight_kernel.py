"""What changes without a name being assigned to: registries, protocols, iterators, copies, names in texts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from kernels import Kernel, shown_of

pytestmark = pytest.mark.slow
Replayed = Callable[..., dict[str, Any]]

HOOK = "class Base:\n    found = {}\n    def __init_subclass__(cls, **k):\n        cls.found[cls.__name__] = cls"
META = (
    "class Meta(type):\n    found = []\n    def __new__(m, name, bases, body):\n"
    "        m.found.append(name)\n        return super().__new__(m, name, bases, body)\n"
    "class Base(metaclass=Meta):\n    pass"
)
TOKENS = (
    "class Tokens:\n    def __init__(self):\n        self.known = {}\n"
    "    def number(self, word):\n        return self.known.setdefault(word, len(self.known))\n"
    "    def encode(self, text):\n        return [self.number(word) for word in text.split()]\n"
    "tokens = Tokens()"
)
BATCHES = (
    "class Batches:\n    def __init__(self):\n        self.epoch, self.seen = 0, []\n"
    "    def __iter__(self):\n        self.epoch += 1\n        return iter([self.epoch])\n"
    "    def __getitem__(self, i):\n        self.seen.append(i)\n        return i\n"
    "    @property\n    def size(self):\n        self.seen.append('size')\n        return len(self.seen)\n"
    "    def __enter__(self):\n        return self\n"
    "    def __exit__(self, *error):\n        self.seen.append('exit')\n"
    "batches = Batches()"
)
COUNTED = (
    "def counted(f):\n    def inner(x):\n        inner.calls += 1\n        return f(x)\n"
    "    inner.calls = 0\n    return inner\n@counted\ndef act(x):\n    return x"
)
CALLABLE = (
    "class Counted:\n    def __init__(self, f):\n        self.calls = 0\n"
    "    def __call__(self, x):\n        self.calls += 1\n@Counted\ndef act(x):\n    return x"
)
REGISTER = "class Found:\n    items = []\n    @classmethod\n    def put(cls, item):\n        cls.items.append(item)"
CLOSURE = (
    "def counter():\n    kept = {'n': 0}\n    def up():\n        kept['n'] += 1\n        return kept['n']\n"
    "    return up\nup = counter()"
)
ITERATOR = (
    "class Numbers:\n    n = 0\n    def __iter__(self):\n        return self\n    def __next__(self):\n"
    "        self.n += 1\n        if self.n > 4:\n            raise StopIteration\n        return self.n\n"
    "numbers = Numbers()"
)
PUT = (
    "class Kept:\n    def __init__(self):\n        self.items = []\n"
    "    def put(self, x):\n        self.items.append(x)\nkept = Kept()\nput = kept.put"
)
OBJECT = (
    "class Registry:\n    def __init__(self):\n        self.d = {}\n    def __call__(self, f):\n        self.d[1] = f\n"
)


@pytest.mark.parametrize(
    ("setup", "change", "shown"),
    [
        (HOOK, "class Net(Base):\n    pass", "sorted(Base.found)"),
        (META, "class Net(Base):\n    pass", "Meta.found"),
        ("class Base:\n    pass", "class Net(Base):\n    pass", "[c.__name__ for c in Base.__subclasses__()]"),
        (REGISTER, "Found.put(1)", "Found.items"),
        (OBJECT + "found = Registry()", "@found\ndef act():\n    pass", "sorted(found.d)"),
        (TOKENS, "tokens.encode('a b')", "tokens.encode('b')"),
        (BATCHES, "for batch in batches:\n    break", "list(batches)"),
        (BATCHES, "first = next(iter(batches))", "batches.epoch"),
        (BATCHES, "batches[0]", "batches.seen"),
        (BATCHES, "batches.size", "batches.seen"),
        (BATCHES, "with batches:\n    pass", "batches.seen"),
        (ITERATOR, "for number in numbers:\n    break", "list(numbers)"),
        (PUT, "put(1)", "kept.items"),
        ("items = []\ndef get():\n    return items", "get().append(1)", "items"),
        ("items = []\ndef get():\n    return items", "more = get()\nmore.append(1)", "items"),
        (COUNTED, "act(1)", "act.calls"),
        (CALLABLE, "act(1)", "act.calls"),
        (CLOSURE, "up()", "up()"),
        ("def note(x, seen=[]):\n    seen.append(x)\n    return seen", "note(1)", "note(2)"),
        ("from collections import defaultdict\nd = defaultdict(lambda: len(d))", "[d[w] for w in 'ab']", "sorted(d)"),
        ("found = []", "list(map(found.append, [1]))", "found"),
        ("import operator\nd = {}", "operator.setitem(d, 1, 2)", "d"),
        ("import numpy as np\nx = np.zeros(3)", "np.add.at(x, [0, 0], 1)", "x"),
        ("import numpy as np\nx = np.ones(3)", "np.multiply(x, 2, x)", "x"),
        ("found = iter(range(5))", "for i in found:\n    break", "list(found)"),
        ("found = (i for i in range(5))", "first = list(zip(found, [0]))", "list(found)"),
        ("cfg = {'a': {'b': 1}}", "new = cfg.copy()\nnew['a']['b'] = 2", "cfg"),
        ("cfg = {'a': {'b': 1}}", "new = dict(cfg)\nnew['a']['b'] = 2", "cfg"),
        ("import copy\ncfg = {'a': [1]}", "new = copy.copy(cfg)\nnew['a'].append(2)", "cfg"),
        ("rows = [[2, 1], [4, 3]]", "for row in sorted(rows):\n    row.sort()", "rows"),
        ("rows = [[1]]", "both = rows + [[2]]\nfor row in both:\n    row.append(3)", "rows"),
        ("sum = max", "del sum", "sum([1, 2])"),
        ("import logging", "logging.getLogger('a').setLevel(40)", "logging.getLogger('a').level"),
        ("from logging import getLogger", "getLogger('b').setLevel(40)", "getLogger('b').level"),
        ("cfg = {'a': [1]}", "new = dict(cfg)\nnew['a'] += [2]", "cfg"),
        ("cfg = {'a': [1]}", "new = dict(cfg)\npart = new['a']\npart.append(2)", "cfg"),
        ("cfg = {'a': [1]}\nnew = dict(cfg)", "cfg['a'].append(2)", "new"),
        (
            "class Kept:\n    def __init__(self):\n        self.n = 0\n    def add(self, x):\n        self.n += x\n"
            "    def note(self, x):\n        return self.add(x)\nkept = Kept()\nnote = kept.note",
            "note(2)",
            "kept.n",
        ),
        ("import logging", "logging.basicConfig(level=10, force=True)", "logging.getLogger().level"),
    ],
)  # fmt: skip
def test_changes_that_are_not_seen_in_the_line_are_made_again(
    kernel: Kernel, replayed: Replayed, setup: str, change: str, shown: str
) -> None:
    kernel.cells(setup, "unrelated = 1", change, f"seen = {shown}", "fit(seen)")
    found = kernel.found()
    assert found.needs_none_of(3)
    assert replayed(found, "seen") == kernel.live("seen")


@pytest.mark.long
@pytest.mark.parametrize(
    ("setup", "look", "used"),
    [
        (
            "class Tokens:\n    known = {}\n    def number(self, word):\n        return self.known.get(word)\n"
            "    def encode(self, text):\n        out = []\n        out.append(self.number(text))\n        return out\n"
            "    def __getitem__(self, i):\n        return i\n    def __iter__(self):\n        return iter(())\n"
            "    @property\n    def size(self):\n        return 1\n    @size.setter\n    def size(self, n):\n"
            "        self.n = n\ntokens = Tokens()",
            "tokens.encode('a'), tokens[0], tokens.size, list(tokens)",
            "tokens",
        ),
        (
            "import functools\ndef timed(f):\n    @functools.wraps(f)\n    def inner(*a):\n        out = {}\n"
            "        out[0] = f(*a)\n        return out[0]\n    return inner\n@timed\ndef load(n):\n    return n",
            "load(1)",
            "load(2)",
        ),
        ("def load(n, sizes=[1]):\n    out = []\n    out.append(sizes[0])\n    return out", "load(1)", "load(2)"),
        ("d = {'a': 1}\nnames = ['a']", "e = d.copy()\ne['b'] = 1\nf = dict(d)\nf['c'] = 1\nsorted(names)", "d"),
        (
            "import pandas as pd\nraw = pd.DataFrame({'a': [1]})\n"
            "def clean(table):\n    table = table.copy()\n    table['b'] = 1\n    return table",
            "shown = clean(raw)",
            "clean(raw)",
        ),
        ("import json", "json.loads('{}').get('a')", "json"),
        ("import pandas as pd\ntable = pd.DataFrame({'a': ['x']})", "pd.get_dummies(table).add_prefix('b')", "table"),
        (
            "import types\nsettings = {'n': 1}\ndef build():\n    made = types.SimpleNamespace(of=settings)\n"
            "    return made",
            "tried = build()\ntried.fit = 1",
            "build()",
        ),
        (
            "cfg = {'a': 1, 'layers': [1]}\nrows = [[1], [2]]",
            "e = cfg.copy()\ne['b'] = 1\nf = dict(cfg)\nf.update(c=1)\ng = list(rows)\ng.append(3)",
            "cfg, rows",
        ),
        (
            "class A:\n    @staticmethod\n    def norm(x):\n        x[0] = 1\n    def step(self):\n        self.n = 1\n"
            "a = A()",
            "a.norm([1])\nprint(callable(a.step))",
            "a",
        ),
        (
            "class T:\n    def clean(self, x):\n        return self.other(x)\n"
            "    def other(self, x):\n        return x\nclean = T().clean",
            "clean(1)",
            "clean(2)",
        ),
        (
            "class D:\n    def __init__(self):\n        self.names = ['a']\n    def __getitem__(self, i):\n"
            "        return self.names[i].convert('L') if i else 1\nds = D()",
            "print(ds[0])",
            "ds",
        ),
        (
            "class Net:\n    def __init__(self, sizes=[]):\n        sizes.append(1)\ndef show(m: Net):\n    return 1",
            "show(1)",
            "show(2)",
        ),
        (
            "import numpy as np\ndef make(np):\n    def f(x):\n        return np.add(x, 1)\n    return f\nf = make(np)",
            "f(1)",
            "f(2)",
        ),
        ("from functools import partial\ntwice = partial(pow, 2)", "twice(3)", "twice"),
        ("import torch\nbatches = torch.utils.data.DataLoader([1, 2])", "first = next(iter(batches))", "batches"),
    ],
)  # fmt: skip
def test_a_look_that_changes_nothing_is_not_sent(
    kernel: Kernel, replayed: Replayed, setup: str, look: str, used: str
) -> None:
    kernel.cells(setup, look, f"x = {used}", "fit(x)")
    found = kernel.found()
    assert found.needs_none_of(3)
    assert replayed(found, shown_of("x")) == kernel.live(shown_of("x"))


@pytest.mark.parametrize(
    ("setup", "look"),
    [
        ("from collections import defaultdict\nd = defaultdict(int)", "print(d['a'])"),
        ("d = iter([1, 2])", "print(list(zip(d, [1])))"),
        (f"{TOKENS}\nd = tokens", "print(d.encode('a'))"),
    ],
)
def test_a_look_in_a_cell_that_failed_is_sent(kernel: Kernel, replayed: Replayed, setup: str, look: str) -> None:
    kernel.cells(setup, f"{look}\n1 / 0", "fit(d)")
    shown = "repr(getattr(d, 'known', None) or list(d))"
    assert replayed(kernel.found(), shown) == kernel.live(shown)


def test_classes_that_are_asked_for_may_bind_names(kernel: Kernel, replayed: Replayed) -> None:
    kernel.cells(
        "made = 0\nclass Base:\n    pass",
        "class Net(Base):\n    def __init__(self):\n        global made, newest\n        made, newest = made + 1, self",
        "nets = [kind() for kind in Base.__subclasses__()]",
        "fit(made)",
    )
    found = kernel.found()
    assert replayed(found, "made") == {"made": "1"}


@pytest.mark.parametrize(
    "odd",
    [
        "class Odd:\n    @property\n    def __class__(self):\n        raise RuntimeError\nodd = Odd()",
        "class Odd(tuple):\n    def __iter__(self):\n        raise ValueError\nodd = Odd([1])",
        "odd = ()\nfor _ in range(3000):\n    odd = (odd,)\nodd = [odd]",
        "odd = eval('+'.join(['1'] * 4000))",
    ],
)
def test_values_that_cannot_be_looked_at_do_not_stop_a_submit(kernel: Kernel, replayed: Replayed, odd: str) -> None:
    kernel.cells(odd, "x = 1", "fit(x)")
    found = kernel.found()
    assert found.needs_none_of(2)
    assert replayed(found, "x") == {"x": "1"}


REGISTER_NET = "@register\nclass Net:\n    def size(self):\n        return helper()"
REGISTER_BASE = "class Base:\n    def __init_subclass__(cls):\n        found['Net'] = cls"


@pytest.mark.parametrize(
    ("setup", "fill"),
    [
        ("found = {}\ndef register(c):\n    found[c.__name__] = c\n    return c", REGISTER_NET),
        ("found = {}\n" + REGISTER_BASE, "class Net(Base):\n    def size(self):\n        return helper()"),
        ("found = {}\nclass Net:\n    def size(self):\n        return helper()", "found['Net'] = Net"),
        ("found = {}\nclass Net:\n    def size(self):\n        return helper()", "found.update(Net=Net)"),
        ("found = {}", "found['Net'] = lambda: type('N', (), {'size': lambda self: helper()})()"),
    ],
)  # fmt: skip
def test_what_a_registered_class_uses_is_sent(kernel: Kernel, replayed: Replayed, setup: str, fill: str) -> None:
    kernel.cells(setup, fill, "unrelated = 1", "def helper():\n    return 7", "n = found['Net']().size()", "fit(n)")
    found = kernel.found()
    assert found.needs_none_of(4)
    assert replayed(found, "n") == {"n": "7"}


def test_a_parameter_that_may_still_be_what_was_given_is_changed(kernel: Kernel, replayed: Replayed) -> None:
    kernel.cells(
        "def note(items, fresh=False):\n    if fresh:\n        items = list(items)\n    items.append(1)",
        "x = []",
        "note(x)",
        "fit(x)",
    )
    found = kernel.found()
    assert replayed(found, "x") == kernel.live("x")


@pytest.mark.parametrize(
    "use",
    [
        "frame.query('a > @limit').a.tolist()",
        "frame.query(f'{column} > @limit').a.tolist()",
        "eval('limit * 2')",
        "globals()['limit']",
        "globals().get('limit')",
    ],
)
def test_names_in_texts_are_found(kernel: Kernel, replayed: Replayed, use: str) -> None:
    kernel.cells(
        "import pandas as pd\nframe = pd.DataFrame({'a': [1, 2]})\ncolumn = 'a'", "limit = 1", f"x = {use}", "fit(x)"
    )
    found = kernel.found()
    assert replayed(found, "x") == kernel.live("x")


def test_what_is_imported_from_the_future_holds_on(kernel: Kernel, replayed: Replayed) -> None:
    kernel.cells("from __future__ import annotations", "class Node:\n    next: Node", "fit(Node)")
    found = kernel.found()
    assert replayed(found, "Node.__annotations__") == {"Node.__annotations__": "{'next': 'Node'}"}
    kernel.run("fit()")
    assert kernel.found().needs_none_of(3)


@pytest.mark.parametrize(
    "change",
    ["prune.l1_unstructured(net, 'weight', 0.5)", "utils.vector_to_parameters(torch.ones(6), net.parameters())"],
)  # fmt: skip
def test_functions_of_torch_that_change_a_model(kernel: Kernel, replayed: Replayed, change: str) -> None:
    kernel.cells(
        "import torch\nfrom torch.nn import utils\nfrom torch.nn.utils import prune\ntorch.manual_seed(0)\n"
        "net = torch.nn.Linear(2, 2)",
        change,
        "fit(net)",
    )
    found = kernel.found()
    assert replayed(found, "net.weight.tolist()") == kernel.live("net.weight.tolist()")


@pytest.mark.long
def test_a_variable_of_tensorflow_is_changed(kernel: Kernel, replayed: Replayed) -> None:
    kernel.cells(
        "import tensorflow as tf\nstep = tf.Variable(0)",
        "@tf.function\ndef count():\n    step.assign_add(1)",
        "count()",
        "step.assign_add(1)",
        "print(step.numpy())",
        "fit(step)",
    )
    found = kernel.found()
    assert found.needs_none_of(6)
    assert replayed(found, "int(step)") == kernel.live("int(step)") == {"int(step)": "2"}


def test_weights_that_cells_left_out_have_drawn_change_nothing(kernel: Kernel, replayed: Replayed) -> None:
    kernel.cells(
        "import torch\ntorch.manual_seed(1)",
        "tried = torch.nn.Linear(2, 2)",
        "def build():\n    return torch.nn.Linear(2, 2)",
        "net = build()",
        "fit(net)",
    )
    found = kernel.found()
    assert found.needs_none_of(3)
    assert replayed(found, "net.weight.tolist()") == kernel.live("net.weight.tolist()")
    kernel.run("torch.manual_seed(1)\nnet = build()\nfit(net)")
    found = kernel.found()
    assert found.warnings == []
    assert replayed(found, "net.weight.tolist()") == kernel.live("net.weight.tolist()")
