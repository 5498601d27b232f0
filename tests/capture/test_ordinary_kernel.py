"""What ordinary notebooks do with tables, own objects, settings and trial trainings, and what is sent of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from kernels import Kernel, shown_of

pytestmark = pytest.mark.slow
Replayed = Callable[..., dict[str, Any]]

TABLES = (
    "import numpy as np, pandas as pd\n"
    "train, test = pd.DataFrame({'v': [1, 2]}), pd.DataFrame({'v': [3]})\n"
    "both = {'train': train}\nxs, ys = np.ones(2), np.ones(1)\n"
    "def prepare(table):\n    table['p'] = 1\n    return table\n"
    "def scale(table):\n    return table.assign(w=1).set_index('v').rename(columns={'w': 'z'}).drop(columns='z')\n"
    "def clean(table):\n    table = table.copy()\n    table['q'] = 1\n    return table"
)


@pytest.mark.parametrize(
    "change",
    [
        "for d in [train, test]:\n    d['n'] = 1",
        "for i, d in enumerate((train, test)):\n    d['n'] = i",
        "for name, d in zip('ab', [train, test]):\n    d['n'] = name",
        "for a in (xs, ys):\n    a *= 2",
        "d = both['train']\nd['n'] = 1",
        "d = train if len(train) > 1 else test\nd['n'] = 1",
        "d = prepare(train)\nd['n'] = 1",
    ],
)
def test_tables_that_are_changed_by_another_name(kernel: Kernel, replayed: Replayed, change: str) -> None:
    kernel.cells(TABLES, change, "fit(train, test, xs, ys)")
    found = kernel.found()
    shown = ("train.to_dict()", "test.to_dict()", "xs.tolist()")
    assert replayed(found, *shown) == kernel.live(*shown)


@pytest.mark.parametrize(
    "look",
    [
        "v = train['v']\nv[0] = 5",
        "d = train[train.v > 1]\nd['n'] = 1",
        "d = clean(train)\nd['n'] = 1",
        "scale(train)",
        "y = xs + 1\ny *= 2",
    ],
)
def test_what_is_made_from_a_table_is_another_one(kernel: Kernel, replayed: Replayed, look: str) -> None:
    kernel.cells(TABLES, look, "fit(train, test, xs)")
    found = kernel.found()
    assert found.needs_none_of(3)
    shown = ("train.to_dict()", "test.to_dict()", "xs.tolist()")
    assert replayed(found, *shown) == kernel.live(*shown)


TOKENS = (
    "class Tokens:\n    def __init__(self):\n        self.known = {}\n"
    "    def number(self, word):\n        return self.known.setdefault(word, len(self.known))\n"
    "    def encode(self, text):\n        return [self.number(word) for word in text.split()]\n"
    "    def decode(self, numbers):\n        return [word for word in self.known if self.known[word] in numbers]\n"
    "class Examples:\n    def __init__(self, texts, tokens):\n        self.texts, self.tokens = texts, tokens\n"
    "    def __getitem__(self, i):\n        return self.tokens.encode(self.texts[i])\n"
    "class Holder:\n    def __init__(self):\n        self.tokens = Tokens()\n"
    "def make():\n    return Tokens()\n"
    "def prepare():\n    tokens = Tokens()\n    return ['a b'], tokens\n"
    "def encode(tokens, text):\n    return tokens.encode(text)"
)


@pytest.mark.parametrize(
    ("made", "grown", "shown"),
    [
        ("tokens = make()", "tokens.encode('b a')", "tokens.known"),
        ("texts, tokens = prepare()", "tokens.encode('b a')", "tokens.known"),
        ("holder = Holder()", "holder.tokens.encode('b a')", "holder.tokens.known"),
        ("tokens = Tokens()\nexamples = Examples(['b a'], tokens)", "examples[0]", "tokens.known"),
        ("tokens = Tokens()", "encode(tokens, 'b a')", "tokens.known"),
    ],
)
def test_own_objects_that_are_held_or_made_out_of_sight_are_changed(
    kernel: Kernel, replayed: Replayed, made: str, grown: str, shown: str
) -> None:
    kernel.cells(TOKENS, made, grown, f"x = {shown}", "fit(x)")
    found = kernel.found()
    assert replayed(found, "x") == kernel.live("x")


@pytest.mark.parametrize(
    ("setup", "look", "used"),
    [
        (
            "import numpy as np\ndef confusion(y, p):\n    counts = np.zeros((2, 2))\n"
            "    for a, b in zip(y, p):\n        counts[a, b] += 1\n    return counts",
            "confusion([0], [1])",
            "confusion",
        ),
        (
            "import pandas as pd\ndef report(rows):\n    table = pd.DataFrame(rows)\n"
            "    table['b'] = 1\n    return table",
            "report({'a': [1]})",
            "pd.DataFrame()",
        ),
        (
            "def first():\n    return [1]\ndef second():\n    items = first()\n    items[0] = 2\n    return items",
            "second()",
            "second()",
        ),
        (
            "import numpy as np\nfrom types import SimpleNamespace\nargs = SimpleNamespace(names=['a'])\n"
            "def windows(n):\n    out = np.zeros((n, len(args.names)))\n    out[0] = 1\n    return out",
            "windows(2)",
            "args",
        ),
        (
            "import torch\ndef make():\n    return torch.nn.Linear(1, 1)\ndef freeze(m):\n    m.bias = None",
            "freeze(make())",
            "make",
        ),
        (
            "import numpy as np\nclass Net:\n    def __init__(self, n):\n        self.n = n\nx = np.ones((2, 3))",
            "net = Net(x.shape[1])\nnet.fit = 1",
            "x",
        ),
    ],
)  # fmt: skip
def test_a_trial_of_a_function_is_not_sent(
    kernel: Kernel, replayed: Replayed, setup: str, look: str, used: str
) -> None:
    kernel.cells(setup, look, f"x = {used}", "fit(x)")
    found = kernel.found()
    assert found.needs_none_of(3)
    assert replayed(found, shown_of("x")) == kernel.live(shown_of("x"))


SEEDING = (
    "import random\ndef seed():\n    random.seed(1)\n"
    "class Net:\n    def train(self):\n        self.n = 1\n"
    "def build():\n    seed()\n    return Net()"
)


def test_a_model_that_is_used_does_not_seed_again_as_its_builder_does(kernel: Kernel, replayed: Replayed) -> None:
    kernel.cells(
        SEEDING, "tried = build()", "tried.n = 1", "print(tried.n)", "net = build()", "net.train()", "fit(net)"
    )
    found = kernel.found()
    assert found.needs_none_of(4, 5)
    assert replayed(found, "net.n") == kernel.live("net.n")


@pytest.mark.parametrize(
    "made",
    [
        "def make():\n    def step():\n        log.append(1)\n    return step\nstep = make()",
        "def steps():\n    while True:\n        log.append(1)\n        yield 1\n"
        "running = steps()\ndef step():\n    next(running)",
    ],
)
def test_what_a_function_leaves_running_changes_things_later(kernel: Kernel, replayed: Replayed, made: str) -> None:
    kernel.cells("log = []", made, "step()", "fit(log)")
    found = kernel.found()
    assert replayed(found, "log") == kernel.live("log")


SETTINGS = (
    "import torch\nfrom dataclasses import dataclass, field\n"
    "@dataclass\nclass Config:\n    lr: float = 0.1\n    sizes: list = field(default_factory=lambda: [4])\n"
    "class Trainer:\n    def __init__(self, net, cfg):\n"
    "        self.net, self.cfg, self.losses = net, cfg, []\n"
    "        self.dropout = torch.nn.Dropout(cfg.lr)\n"
    "    def train(self):\n        self.net(torch.ones(1, 4)).sum().backward()\n        self.dropout.train()\n"
    "        self.losses.append(1)\n"
    "class Growing(Trainer):\n    def train(self):\n        self.note()\n"
    "    def note(self):\n        self.cfg.sizes.append(5)\n"
    "class Words:\n    def __init__(self):\n        self.known = {}\n"
    "    def number(self, word):\n        return self.known.setdefault(word, len(self.known))\n"
    "    def look(self, word):\n        return self.known.get(word)\n"
    "class Texts(torch.utils.data.Dataset):\n    def __init__(self, texts, words, grow):\n"
    "        self.texts, self.words, self.grow, self.cache = texts, words, grow, {}\n"
    "    def __getitem__(self, i):\n        self.cache[i] = self.words.look(self.texts[i])\n"
    "        return self.cache[i]\n"
    "class GrowingTexts(Texts):\n    def __getitem__(self, i):\n        return self.words.number(self.texts[i])\n"
    "def build(cfg):\n    return torch.nn.Linear(cfg.sizes[0], 1)\n"
    "def train(net, cfg):\n    dropout = torch.nn.Dropout(cfg.lr)\n"
    "    net(torch.ones(1, 4)).sum().backward()\n    dropout.train()\n"
    "def train_growing(cfg):\n    trainer = Growing(build(cfg), cfg)\n    trainer.train()\n"
    "generator = __import__('random').Random(1)\n"
    "def shuffled(cfg):\n    generator.shuffle(cfg.sizes)\n    cfg.sizes.copy()\n"
    "def set_rate(cfg):\n    cfg.lr = 0.3\n"
    "def reset(trainer):\n    trainer.cfg.lr = 0.3\n"
    "cfg, config, words = Config(), {'lr': 0.1, 'sizes': [4]}, Words()"
)


@pytest.mark.parametrize(
    "trial",
    [
        "dropout = torch.nn.Dropout(config['lr'])\ndropout.train()",
        "dropout = torch.nn.Dropout(cfg.lr)\ndropout.train()",
        "net = build(cfg)\nnet.train()\nnet(torch.ones(1, 4))",
        "train(build(cfg), cfg)",
        "trainer = Trainer(build(cfg), cfg)\ntrainer.train()",
        "texts = Texts(['a'], words, False)\ntexts[0]",
    ],
)
def test_a_trial_training_does_not_change_the_settings_that_it_was_given(
    kernel: Kernel, replayed: Replayed, trial: str
) -> None:
    kernel.cells(SETTINGS, trial, "fit(cfg, config, words)")
    found = kernel.found()
    assert found.needs_none_of(3)
    shown = ("cfg", "config", "words.known")
    assert replayed(found, *shown) == kernel.live(*shown)


@pytest.mark.parametrize(
    "change",
    [
        "trainer = Growing(build(cfg), cfg)\ntrainer.train()",
        "trainer = Trainer(build(cfg), cfg)\nreset(trainer)",
        "set_rate(cfg)",
        "train_growing(cfg)",
        "cfg.sizes.append(6)\nshuffled(cfg)",
        "texts = GrowingTexts(['a'], words, True)\ntexts[0]",
        "part = config['sizes']\npart.append(5)",
    ],
)
def test_code_of_the_cells_may_change_settings(kernel: Kernel, replayed: Replayed, change: str) -> None:
    kernel.cells(SETTINGS, change, "fit(cfg, config, words)")
    found = kernel.found()
    shown = ("cfg", "config", "words.known")
    assert replayed(found, *shown) == kernel.live(*shown)


def test_what_is_looked_at_has_the_methods_of_its_own_class(kernel: Kernel, replayed: Replayed) -> None:
    kernel.cells(SETTINGS, "texts = Texts(['a'], words, False)\nfirst = [len(texts.texts)]", "first[0]", "fit(texts)")
    found = kernel.found()
    assert found.needs_none_of(4)
    assert replayed(found, "texts.texts", "texts.cache") == kernel.live("texts.texts", "texts.cache")


@pytest.mark.parametrize("look", ["first = next(iter(batches))", "for batch in batches:\n    break", "count(batches)"])
def test_random_numbers_that_a_look_at_batches_draws_change_nothing(
    kernel: Kernel, replayed: Replayed, look: str
) -> None:
    kernel.cells(
        "import torch\nfrom torch.utils.data import DataLoader\ntorch.manual_seed(1)",
        "batches = DataLoader([1, 2])\ndef count(loader):\n    return sum(1 for batch in loader)",
        look,
        "net = torch.nn.Linear(2, 2)",
        "fit(net, batches)",
    )
    found = kernel.found()
    assert found.needs_none_of(4)
    assert not found.warnings
    shown = ("net.weight", "batches.dataset")
    assert replayed(found, *shown) == kernel.live(*shown)


def test_draws_before_and_after_a_seed_in_one_cell(kernel: Kernel, replayed: Replayed) -> None:
    kernel.cells(
        "import torch\nfrom torch.utils.data import DataLoader\ntorch.manual_seed(1)\nbatches = DataLoader([1, 2])",
        "next(iter(batches))",
        "table = torch.randn(2)\ntorch.manual_seed(2)\nnet = torch.nn.Linear(2, 2)",
        "fit(net, table)",
    )
    found = kernel.found()
    assert not found.warnings
    assert replayed(found, "table", "net.weight") == kernel.live("table", "net.weight")


def test_draws_without_any_seed_are_the_notebooks(kernel: Kernel, replayed: Replayed) -> None:
    kernel.cells(
        "import random\nimport numpy as np",
        "noise = np.random.rand(3)",
        "np.random.rand(5)\nrandom.random()",
        "order = random.sample(range(100), 5)\nmore = np.random.normal(size=2)",
        "fit(noise, order, more)",
    )
    found = kernel.found()
    shown = ("noise", "order", "more")
    assert replayed(found, *shown) == kernel.live(*shown)
