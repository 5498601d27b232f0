"""Short histories such as public notebooks have: what is replayed is what the kernel had.

They were written before anybody looked at how they fare; `docs/capture.md` says how they did the first time.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from kernels import Kernel

pytestmark = [pytest.mark.slow, pytest.mark.long]
Replayed = Callable[..., dict[str, Any]]


@dataclass(frozen=True)
class History:
    """Cells, what the last one trains with, what must be equal there, and which cells (by index) need not be sent."""

    name: str
    cells: tuple[str, ...]
    shown: tuple[str, ...]
    stays: tuple[int, ...] = ()


NP = "import numpy as np"
PD = "import numpy as np\nimport pandas as pd"
FRAME = (
    "df = pd.DataFrame({'age': [22.0, None, 35.0, 58.0], 'fare': [7.25, 71.3, 8.05, 26.5], 'sex': ['m', 'f', 'f', 'm'],"
    " 'survived': [0, 1, 1, 0]})"
)

HISTORIES = [
    History(
        "missing values are filled in place",
        (PD, FRAME, "df.isnull().sum()", "df['age'].mean()", "df['age'] = df['age'].fillna(df['age'].median())"),
        ("df.values.tolist()",),
        (2, 3),
    ),
    History(
        "columns are dropped in place and categories encoded",
        (
            PD,
            FRAME,
            "df.dropna(inplace=True)\ndf.reset_index(drop=True, inplace=True)",
            "df.head()",
            "df['sex'] = df['sex'].map({'m': 0, 'f': 1})",
            "y = df.pop('survived')",
        ),
        ("df.values.tolist()", "y.tolist()"),
        (3,),
    ),
    History(
        "a column by loc under a condition",
        (PD, FRAME, "df.loc[df['fare'] > 20, 'fare'] = 20.0", "df.describe()", "x = df[['age', 'fare']].to_numpy()"),
        ("x.tolist()",),
        (3,),
    ),
    History(
        "a scaler is fitted and used in another cell",
        (
            NP,
            "from sklearn.preprocessing import StandardScaler",
            "x = np.arange(12.0).reshape(6, 2)",
            "scaler = StandardScaler()",
            "scaler.fit(x[:4])",
            "print(scaler.mean_)",
            "x = scaler.transform(x)",
        ),
        ("x.tolist()", "scaler.mean_.tolist()"),
        (5,),
    ),
    History(
        "labels by an encoder that was fitted in one go",
        (
            NP,
            "from sklearn.preprocessing import LabelEncoder\nle = LabelEncoder()",
            "names = ['b', 'a', 'c', 'a']",
            "y = le.fit_transform(names)",
            "le.classes_",
            "number_of_classes = len(le.classes_)",
        ),
        ("y.tolist()", "number_of_classes"),
        (4,),
    ),
    History(
        "a seeded split, and an unseeded look in between",
        (
            NP,
            "from sklearn.model_selection import train_test_split",
            "np.random.seed(42)",
            "x = np.random.rand(20, 2)",
            "np.random.permutation(5)",
            "a, b = train_test_split(x, test_size=0.25)",
        ),
        ("a.tolist()", "b.tolist()"),
    ),
    History(
        "a shuffle in place of two arrays by one order",
        (
            NP,
            "x, y = np.arange(10), np.arange(10) * 2",
            "order = np.random.permutation(10)",
            "order[:3]",
            "x, y = x[order], y[order]",
            "np.random.shuffle(x)",
        ),
        ("x.tolist()", "y.tolist()"),
        (3,),
    ),
    History(
        "pictures are scaled twice, once wrongly",
        (
            NP,
            "images = np.arange(32, dtype='float32').reshape(2, 4, 4)",
            "images /= 255.0",
            "images.max()",
            "images = images * 255.0",
            "images = np.expand_dims(images, -1)",
        ),
        ("images.tolist()",),
        (3,),
    ),
    History(
        "a list of paths is sorted and shuffled with random",
        (
            "import random",
            "paths = [f'img_{i}.png' for i in range(8)]",
            "random.seed(3)",
            "random.shuffle(paths)",
            "paths[:2]",
            "val, train = paths[:2], paths[2:]",
        ),
        ("val", "train"),
        (4,),
    ),
    History(
        "a word index is built in a loop",
        (
            "texts = ['a b', 'b c c']",
            "from collections import Counter, defaultdict\ncounts = Counter()",
            "for text in texts:\n    counts.update(text.split())",
            "counts.most_common(1)",
            "index = {w: i + 1 for i, (w, _) in enumerate(counts.most_common())}\nindex['<unk>'] = 0",
            "coded = [[index.get(w, 0) for w in t.split()] for t in texts]",
        ),
        ("coded", "index"),
        (3,),
    ),
    History(
        "a class for configuration is changed later",
        (
            "class Config:\n    lr = 0.1\n    layers = [64]",
            "print(Config.lr)",
            "Config.lr = 0.01",
            "Config.layers.append(32)",
            "cfg = Config()",
            "cfg.epochs = 5",
        ),
        ("Config.lr", "Config.layers", "cfg.epochs"),
        (1,),
    ),
    History(
        "a dictionary of settings is updated and one is deleted",
        (
            "params = {'lr': 0.1, 'units': 8, 'old': 1}",
            "params.update(units=16)",
            "del params['old']",
            "len(params)",
            "params = {**params, 'drop': 0.5}",
        ),
        ("params",),
        (3,),
    ),
    History(
        "a function is defined twice, used in between",
        (
            NP,
            "def clean(v):\n    return v + 1",
            "x = clean(np.arange(3))",
            "def clean(v):\n    return v * 10",
            "z = clean(x)",
        ),
        ("x.tolist()", "z.tolist()"),
    ),
    History(
        "a helper reads a global that is changed afterwards",
        ("SIZE = 4", "def make():\n    return [0] * SIZE", "first = make()", "SIZE = 6", "second = make()"),
        ("first", "second"),
    ),
    History(
        "plots of everything",
        (
            NP,
            "import matplotlib\nmatplotlib.use('Agg')\nimport matplotlib.pyplot as plt",
            "x = np.arange(5.0)",
            "fig, ax = plt.subplots()\nax.plot(x, x ** 2)",
            "plt.hist(x)",
            "plt.close('all')",
            "y = x ** 2",
        ),
        ("y.tolist()",),
        (3, 4),
    ),
    History(
        "a torch dataset class and a split with a generator",
        (
            "import torch\nfrom torch.utils.data import Dataset, random_split",
            "class Rows(Dataset):\n    def __init__(self, n):\n        self.x = torch.arange(n)\n"
            "    def __len__(self):\n        return len(self.x)\n"
            "    def __getitem__(self, i):\n        return self.x[i]",
            "rows = Rows(10)",
            "len(rows), rows[3]",
            "train, val = random_split(rows, [8, 2], generator=torch.Generator().manual_seed(1))",
        ),
        ("list(train.indices)", "list(val.indices)"),
        (3,),
    ),
    History(
        "weights are initialised by apply",
        (
            "import torch\nfrom torch import nn",
            "torch.manual_seed(0)",
            "model = nn.Sequential(nn.Linear(3, 2), nn.ReLU())",
            "def init_weights(m):\n    if isinstance(m, nn.Linear):\n        nn.init.ones_(m.weight)",
            "print(model)",
            "model.apply(init_weights)",
        ),
        ("[p.tolist() for p in model.parameters()]",),
        (4,),
    ),
    History(
        "layers of a network are frozen and one is replaced",
        (
            "import torch\nfrom torch import nn",
            "torch.manual_seed(0)\nnet = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 2))",
            "for p in net.parameters():\n    p.requires_grad = False",
            "sum(p.numel() for p in net.parameters())",
            "net[1] = nn.Linear(3, 4)",
        ),
        ("[p.requires_grad for p in net.parameters()]", "[p.tolist() for p in net.parameters()]"),
        (3,),
    ),
    History(
        "one batch is tried by hand",
        (
            "import torch\nfrom torch import nn",
            "torch.manual_seed(1)\nnet = nn.Linear(3, 1)",
            "x = torch.randn(4, 3)",
            "out = net(x)\nout.shape",
            "loss = out.pow(2).mean()",
            "loss.item()",
        ),
        ("[p.tolist() for p in net.parameters()]", "x.tolist()"),
        (3, 4, 5),
    ),
    History(
        "an early training by hand of another model",
        (
            "import torch\nfrom torch import nn",
            "x = torch.ones(4, 2)",
            "torch.manual_seed(0)\nfirst = nn.Linear(2, 1)",
            "opt = torch.optim.SGD(first.parameters(), lr=0.1)\nfor _ in range(3):\n    opt.zero_grad()\n"
            "    first(x).sum().backward()\n    opt.step()",
            "torch.manual_seed(0)\nsecond = nn.Linear(2, 1)",
        ),
        ("[p.tolist() for p in second.parameters()]", "x.tolist()"),
        (2, 3),
    ),
    History(
        "an early training by hand of the same model",
        (
            "import torch\nfrom torch import nn",
            "x = torch.ones(4, 2)",
            "torch.manual_seed(0)\nnet = nn.Linear(2, 1)",
            "opt = torch.optim.SGD(net.parameters(), lr=0.1)",
            "for _ in range(3):\n    opt.zero_grad()\n    net(x).sum().backward()\n    opt.step()",
        ),
        ("[p.tolist() for p in net.parameters()]",),
    ),
    History(
        "everything in one class, trained a little",
        (
            "class Loop:\n    def __init__(self):\n        self.seen = []\n"
            "    def step(self, x):\n        self.seen.append(x)\n        return self",
            "loop = Loop()",
            "loop.step(1).step(2)",
            "len(loop.seen)",
            "loop.step(3);",
        ),
        ("loop.seen",),
        (3,),
    ),
    History(
        "a cell that failed is fixed",
        ("rows = [1, 2, 3]", "total = sum(rows) + missing", "missing = 5", "total = sum(rows) + missing"),
        ("total",),
        (1,),
    ),
    History(
        "an import is added late, and an alias",
        (
            "import math",
            "r = math.floor(2.7)",
            "from math import pi as PI",
            "import collections.abc as abc",
            "area = PI * r",
        ),
        ("area",),
        (3,),
    ),
    History(
        "star imports and a shadowed name",
        ("from math import *", "pi = 3", "x = floor(pi * sqrt(4))"),
        ("x",),
    ),
    History(
        "a closure counts",
        (
            "def counter():\n    n = 0\n    def more():\n        nonlocal n\n"
            "        n += 1\n        return n\n    return more",
            "count = counter()",
            "count()",
            "count()",
            "now = count()",
        ),
        ("now",),
    ),
    History(
        "a generator is used up in part",
        ("numbers = (n * n for n in range(10))", "next(numbers)", "next(numbers)", "rest = list(numbers)"),
        ("rest",),
    ),
    History(
        "arguments from argparse as scripts have them",
        (
            "import argparse",
            "parser = argparse.ArgumentParser()\nparser.add_argument('--lr', type=float, default=0.1)",
            "args = parser.parse_args([])",
            "args",
            "args.lr = 0.5",
        ),
        ("args.lr",),
        (3,),
    ),
    History(
        "a data class and replace",
        (
            "from dataclasses import dataclass, replace",
            "@dataclass\nclass Args:\n    lr: float = 0.1\n    tags: tuple = ()",
            "args = Args()",
            "args = replace(args, lr=0.2)",
            "print(args)",
            "args.tags += ('x',)",
        ),
        ("args.lr", "args.tags"),
        (4,),
    ),
    History(
        "environment and working settings",
        (
            "import os",
            "os.environ['MY_MODE'] = 'fast'",
            "mode = os.environ.get('MY_MODE', 'slow')",
            "os.environ['OTHER_MODE'] = 'x'",
        ),
        ("mode", "os.environ['MY_MODE']"),
    ),
    History(
        "print options and warnings are set",
        (
            PD,
            "import warnings\nwarnings.filterwarnings('ignore')",
            "np.set_printoptions(threshold=1000)",
            "pd.set_option('display.max_columns', 50)",
            "x = np.arange(3) / 7",
        ),
        ("x.tolist()",),
    ),
    History(
        "a table is merged, grouped and sorted in place",
        (
            PD,
            "a = pd.DataFrame({'k': [1, 2, 2], 'v': [3, 4, 5]})\nb = pd.DataFrame({'k': [1, 2], 'w': [7, 8]})",
            "m = a.merge(b, on='k')",
            "m.groupby('k').mean()",
            "m.sort_values('v', ascending=False, inplace=True)",
            "m['r'] = m.groupby('k')['v'].rank()",
        ),
        ("m.values.tolist()",),
        (3,),
    ),
    History(
        "a view of an array is written into",
        (
            NP,
            "grid = np.zeros((3, 3))",
            "row = grid[1]",
            "row[:] = 7",
            "grid.sum()",
            "corner = grid[0:2]\ncorner[0, 0] = 5",
        ),
        ("grid.tolist()",),
        (4,),
    ),
    History(
        "two names of one list",
        ("a = [1]", "b = a", "b.append(2)", "b = []", "b.append(9)", "c = len(a)"),
        ("a", "c"),
    ),
    History(
        "a cache by lru_cache and memo",
        (
            "from functools import lru_cache",
            "@lru_cache(None)\ndef fib(n):\n    return n if n < 2 else fib(n - 1) + fib(n - 2)",
            "fib(30)",
            "memo = {}",
            "def slow(n):\n    if n not in memo:\n        memo[n] = n * n\n    return memo[n]",
            "value = slow(4) + fib(10)",
        ),
        ("value",),
        (2,),
    ),
    History(
        "timing and progress",
        (
            "import time",
            "start = time.time()",
            "rows = []\nfor i in range(5):\n    rows.append(i)",
            "print(f'took {time.time() - start:.1f} s')",
            "n = len(rows)",
        ),
        ("rows", "n"),
        (3,),
    ),
    History(
        "last values of a loop are used",
        (
            "data = [3, 1, 2]",
            "best, where = None, None\nfor i, v in enumerate(data):\n"
            "    if best is None or v < best:\n        best, where = v, i",
            "for i in range(2):\n    pass",
            "picked = data[where]",
        ),
        ("picked", "where", "best"),
    ),
    History(
        "a nested dictionary of histories",
        (
            "from collections import defaultdict",
            "history = defaultdict(list)",
            "for e in range(2):\n    history['loss'].append(1 / (e + 1))",
            "history['acc'] += [0.5]",
            "dict(history)",
            "last = {k: v[-1] for k, v in history.items()}",
        ),
        ("last", "dict(history)"),
        (4,),
    ),
    History(
        "a sparse matrix from a vectorizer",
        (
            "from sklearn.feature_extraction.text import TfidfVectorizer",
            "docs = ['a cat', 'a dog sat', 'dog']",
            "vec = TfidfVectorizer()",
            "x = vec.fit_transform(docs)",
            "x.shape",
            "dense = x.toarray().round(3)",
        ),
        ("dense.tolist()",),
        (4,),
    ),
    History(
        "a pipeline of sklearn, tried before",
        (
            NP,
            "from sklearn.pipeline import make_pipeline\nfrom sklearn.preprocessing import MinMaxScaler\n"
            "from sklearn.decomposition import PCA",
            "x = np.arange(24.0).reshape(8, 3) ** 1.5",
            "pipe = make_pipeline(MinMaxScaler(), PCA(2, random_state=0))",
            "pipe.fit(x)",
            "pipe.transform(x[:1])",
            "z = np.abs(pipe.transform(x)).round(6)",
        ),
        ("z.tolist()",),
        (5,),
    ),
]


@pytest.mark.parametrize("history", [pytest.param(one, id=one.name.replace(" ", "-")) for one in HISTORIES])
def test_a_pattern_of_public_notebooks(kernel: Kernel, replayed: Replayed, history: History) -> None:
    kernel.cells(*history.cells)
    names = sorted({word for shown in history.shown for word in _names(shown)})
    kernel.run(f"fit({', '.join(names)})")
    found = kernel.found()
    assert not found.error
    assert replayed(found, *history.shown) == kernel.live(*history.shown)
    assert found.needs_none_of(*(index + 2 for index in history.stays)), found.cells


def _names(expression: str) -> set[str]:
    tree = ast.parse(expression)
    bound = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    return used - bound - {"list", "len", "dict"}
