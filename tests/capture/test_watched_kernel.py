"""Changes that no reading of the cells finds: values are looked at after every cell."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from kernels import Kernel

pytestmark = pytest.mark.slow
Replayed = Callable[..., dict[str, Any]]

SETUP = (
    "import functools\nfrom concurrent.futures import ThreadPoolExecutor\nfrom dataclasses import dataclass\n"
    "@dataclass\nclass Own:\n    n: int = 0\n    def bump(self):\n        self.n += 1\n"
    "state, history, own = {'n': 1, 'log': []}, [], Own()\n"
    "def more(s):\n    s['n'] += 1\n"
    "table = {'more': more}\n"
    "class Runner:\n"
    "    def __init__(self, s=None):\n        self.s = s\n"
    "    def __call__(self, s):\n        s['n'] *= 3\n"
    "    def __enter__(self):\n        self.s['n'] = 45\n"
    "    def __exit__(self, *error):\n        pass\n"
    "    def train(self, s):\n        self.step(s)\n"
    "    def step(self, s):\n        s['n'] += 1\n"
    "    def go(self):\n        self.s['n'] = 43\n"
)
SHOWN = ("state", "history", "vars(own)")


@pytest.mark.parametrize(
    "change",
    [
        "Runner().train(state)",
        "run = Runner()\nrun(state)",
        "table['more'](state)",
        "def step(s):\n    table['more'](s)\nstep(state)",
        "def step(s):\n    f = s.bump\n    f()\nstep(own)",
        "def step(s, name):\n    getattr(s, name)()\nstep(own, 'bump')",
        "f = lambda s: s.update(a=1)\nf(state)",
        "for f in (more, more):\n    f(state)",
        "list(map(more, [state]))",
        "functools.partial(more, state)()",
        "with ThreadPoolExecutor(1) as executor:\n    executor.submit(more, state).result()",
        "def log_of(s):\n    return s['log']\nlog_of(state).append(3)",
        "runner = Runner()\nrunner.s = state\nrunner.go()",
        "with Runner(state):\n    pass",
        "def step(s):\n    (t := s)['n'] = 50\nstep(state)",
    ],
)
def test_whatever_changed_a_value_is_sent(kernel: Kernel, replayed: Replayed, change: str) -> None:
    kernel.cells(SETUP, change, "len(history)", "fit(state, history, own)")
    found = kernel.found()
    assert found.needs_none_of(4)
    assert replayed(found, *SHOWN) == kernel.live(*SHOWN)


def test_a_hook_that_a_library_calls(kernel: Kernel, replayed: Replayed) -> None:
    kernel.cells(
        SETUP,
        "import torch\nnet = torch.nn.Linear(1, 1)\nnet.register_forward_hook(lambda *given: history.append(1))",
        "net(torch.ones(1))",
        "fit(history)",
    )
    found = kernel.found()
    assert replayed(found, *SHOWN) == kernel.live(*SHOWN)


def test_what_a_failed_cell_changed_before_it_failed_is_sent(kernel: Kernel, replayed: Replayed) -> None:
    kernel.cells(SETUP, "table['more'](state)\n1 / 0", "fit(state)")
    assert replayed(kernel.found(), "state") == kernel.live("state")


def test_a_cell_that_trains_here_does_not_count_for_what_the_training_changed(
    kernel: Kernel, replayed: Replayed
) -> None:
    kernel.cells(SETUP, "table['more'](state)\nfit(state, local=True)", "fit(history)")
    found = kernel.found()
    assert found.needs_none_of(3)
    assert replayed(found, "history") == kernel.live("history")


LOOKS = (
    "class Stack:\n"
    "    def __init__(self):\n        self.items = [1]\n"
    "    def peek(self):\n        last = self.items.pop()\n        self.items.append(last)\n        return last\n"
    "class Trial:\n"
    "    def __init__(self, settings):\n        self.settings, self.losses = settings, []\n"
    "    def run(self, batches):\n        self.losses.append(self.settings['rate'])\n"
    "def sorted_in_place(values):\n    values.sort()\n"
    "stack, settings, values = Stack(), {'rate': 0.1}, [1, 2]\n"
)


@pytest.mark.parametrize(
    "look", ["stack.peek()", "trial = Trial(settings)\ntrial.run(values)", "sorted_in_place(values)", "values.sort()"]
)
def test_what_is_the_same_after_a_cell_does_not_need_it(kernel: Kernel, replayed: Replayed, look: str) -> None:
    kernel.cells(LOOKS, look, "fit(stack, settings, values)")
    found = kernel.found()
    assert found.needs_none_of(3)
    shown = ("stack.items", "settings", "values")
    assert replayed(found, *shown) == kernel.live(*shown)


def test_what_a_cell_changes_and_the_next_changes_back_is_sent(kernel: Kernel, replayed: Replayed) -> None:
    kernel.cells(LOOKS, "values.append(3)", "first = list(values)", "values.pop()", "fit(first, values)")
    found = kernel.found()
    assert replayed(found, "first", "values") == kernel.live("first", "values")


@pytest.mark.parametrize(
    ("seed", "drawn"),
    [
        ("import numpy\nnumpy.random.seed(1)", "forest = RandomForestClassifier(2).fit([[0], [1]] * 5, [0, 1] * 5)"),
        ("import random\nrandom.seed(1)", "picked = pick([1, 2, 3])"),
    ],
)
def test_random_numbers_that_a_library_draws_change_nothing(
    kernel: Kernel, replayed: Replayed, seed: str, drawn: str
) -> None:
    kernel.cells(
        "import functools, random\nfrom sklearn.ensemble import RandomForestClassifier\npick = random.choice",
        seed,
        drawn,
        f"start = {'numpy.random.rand(3)' if 'numpy' in seed else 'random.random()'}",
        "fit(start)",
    )
    found = kernel.found()
    assert found.needs_none_of(4)
    assert replayed(found, "start") == kernel.live("start")


@pytest.mark.parametrize(
    ("seed", "draw"),
    [
        ("random.seed", "random.random()"),
        ("numpy.random.seed", "numpy.random.rand()"),
        ("torch.manual_seed", "torch.nn.Linear(1, 1).weight.item()"),
    ],
)
def test_what_a_module_seeds_is_sent(kernel: Kernel, replayed: Replayed, seed: str, draw: str) -> None:
    (kernel.folder / f"fixing_{seed[:5]}.py").write_text(
        f"import random, numpy, torch\ndef fix(number):\n    {seed}(number)\n    return numpy.arange(3)\n"
    )
    kernel.cells(
        f"import random, numpy, torch\nfrom fixing_{seed[:5]} import fix", "fix(7)", f"start = {draw}", "fit(start)"
    )
    found = kernel.found()
    assert replayed(found, "start") == kernel.live("start")


def test_a_generator_that_a_library_draws_from(kernel: Kernel, replayed: Replayed) -> None:
    kernel.cells(
        "import torch\ngenerator = torch.Generator().manual_seed(3)",
        "torch.rand(2, generator=generator)",
        "fit(generator)",
    )
    found = kernel.found()
    assert replayed(found, "torch.rand(1, generator=generator)") == kernel.live("torch.rand(1, generator=generator)")


def test_a_cell_that_draws_nothing_is_not_said_to(kernel: Kernel, replayed: Replayed) -> None:
    kernel.cells(
        "import numpy, random\nnumpy.random.seed(1)\nrandom.seed(1)",
        "numpy.arange(9).reshape(3, 3) + 2\nsorted([3, 1, 2])",
        "start = numpy.random.rand(3), random.random()",
        "fit(start)",
    )
    found = kernel.found()
    assert found.needs_none_of(3)
    assert found.warnings == []
    assert replayed(found, "start") == kernel.live("start")


def test_a_trial_training_of_another_model_from_the_same_settings_is_not_sent(
    kernel: Kernel, replayed: Replayed
) -> None:
    kernel.cells(
        "import torch\n"
        "class Net(torch.nn.Module):\n"
        "    def __init__(self, cfg):\n"
        "        super().__init__()\n        self.cfg, self.linear = cfg, torch.nn.Linear(cfg['width'], 1)\n"
        "def train(net, cfg):\n"
        "    net.linear(torch.ones(2)).sum().backward()\n"
        "    with torch.no_grad():\n        net.linear.weight -= cfg['rate'] * net.linear.weight.grad\n"
        "cfg = {'width': 2, 'rate': 0.1}",
        "torch.manual_seed(1)\nnet = Net(cfg)",
        "other = Net(cfg)\ntrain(other, cfg)",
        "fit(net, cfg)",
    )
    found = kernel.found()
    assert found.needs_none_of(4)
    shown = ("net.linear.weight.tolist()", "cfg")
    assert replayed(found, *shown) == kernel.live(*shown)


def test_settings_that_a_loop_makes_several_times_are_not_one(kernel: Kernel, replayed: Replayed) -> None:
    kernel.cells(
        "import torch\n"
        "class Net(torch.nn.Module):\n"
        "    def __init__(self, cfg):\n        super().__init__()\n        self.part = cfg['part']\n"
        "def grow(net):\n    net.part.append(2)",
        "for width in (1, 2):\n    cfg = {'part': [width]}\n    if width == 1:\n        net, twin = Net(cfg), Net(cfg)",
        "grow(twin)",
        "fit(net)",
    )
    found = kernel.found()
    assert replayed(found, "net.part") == kernel.live("net.part")


def test_what_two_objects_keep_of_settings_that_have_changed_since_is_followed(
    kernel: Kernel, replayed: Replayed
) -> None:
    kernel.cells(
        "class Net:\n    def __init__(self, cfg):\n        self.part = cfg['part']\n"
        "def grow(net):\n    net.part.append(2)\n"
        "cfg = {'part': [1]}",
        "net, other = Net(cfg), Net(cfg)",
        "cfg['part'] = [5]",
        "grow(other)",
        "fit(net, cfg)",
    )
    found = kernel.found()
    assert replayed(found, "net.part", "cfg") == kernel.live("net.part", "cfg")


def test_what_a_cell_seeds_out_of_sight_counts(kernel: Kernel, replayed: Replayed) -> None:
    kernel.cells("import torch", "getattr(torch, 'manual_seed')(3)", "net = torch.rand(3).tolist()", "fit(net)")
    assert replayed(kernel.found(), "net") == kernel.live("net")


def test_what_init_seeds_here_it_seeds_on_the_worker_too(kernel: Kernel, replayed: Replayed) -> None:
    kernel.cells(
        "import torch\nfrom det_stand_in import init",
        "context = init()\ngetattr(torch, 'manual_seed')(3)",
        "net = [1]",
        "fit(net)",
    )
    found = kernel.found()
    assert replayed(found, "net") == {"net": "[1]"}


TABLE = (
    "import numpy as np\nimport pandas as pd\ndf = pd.DataFrame({'a': [1.0, None, 3.0]})\n"
    "cfg = {'lr': 1, 'layers': [1]}"
)


@pytest.mark.parametrize(
    ("failed", "mended"),
    [
        ("cfg['lr'] = 0.1\nprint(cgf)", "cfg['lr'] = 0.1\nprint(cfg)"),
        ("cfg['lr'] = 0.1\nprint(cgf)", "cfg['lr'] = 0.3\nprint(cfg)"),
        ("df['a'] = df['a'].fillna(0)\nprint(fd.head())", "df['a'] = df['a'].fillna(0)\nprint(df.head())"),
        ("df['b'] = df['a'] * 2\ndf['c'] = dff['b']", "df['b'] = df['a'] * 2\ndf['c'] = df['b'] + 1"),
        ("df['b'] = np.log(df['a'])\nplt.plot(df['b'])", "df['b'] = np.log(df['a'])\nprint(df['b'])"),
        ("cfg['layers'].clear()\nplt.plot(cfg)", "cfg['layers'].clear()\nprint(cfg)"),
        ("cfg['lr'] = 0.1\nfot(cfg)", "cfg['lr'] = 0.1"),
    ],
)
def test_a_failed_cell_that_was_mended_and_run_again(
    kernel: Kernel, replayed: Replayed, failed: str, mended: str
) -> None:
    kernel.cells(TABLE, failed, mended, "fit(df, cfg)")
    found = kernel.found()
    assert not found.error
    shown = ("df.to_dict()", "cfg")
    assert replayed(found, *shown) == kernel.live(*shown)


def test_a_failed_cell_that_was_mended_with_the_call_in_it(kernel: Kernel, replayed: Replayed) -> None:
    kernel.cells(TABLE, "other = cfg", "cfg['lr'] = 0.1\nfot(cfg)", "cfg['lr'] = 0.1\nfit(cfg, other)")
    found = kernel.found()
    assert replayed(found, "cfg", "other") == kernel.live("cfg", "other")


@pytest.mark.parametrize(
    ("failed", "then"),
    [
        ("cfg['layers'].append(1)\n1 / 0", "cfg['layers'].append(1)"),  # it was done twice
        ("df['a'] = df['a'] * 2\n1 / 0", "df['a'] = df['a'] * 2"),
        ("cfg['lr'] = 0.1\n1 / 0", "cfg['layers'].append(2)"),  # it is not done again
        ("cfg['lr'] = 0.1\n1 / 0", "cfg['lr'] = cfg['lr'] / 2"),
        ("cfg['lr'] = 0.1\n1 / 0", "rate = cfg['lr']\ncfg['lr'] = 0.1"),
        ("for n in range(3):\n    cfg[n] = 1 / (2 - n)", "cfg[0] = 0.5"),
    ],
)
def test_a_failed_cell_whose_work_is_not_done_again(kernel: Kernel, replayed: Replayed, failed: str, then: str) -> None:
    kernel.cells(TABLE, failed, then, "rate = 0\nfit(df, cfg, rate)")
    shown = ("df.to_dict()", "cfg")
    found = kernel.found()
    assert found.needs_none_of(3) == ("cfg" in found.value_names)
    assert replayed(found, *shown) == kernel.live(*shown)


def test_what_was_read_between_a_failed_cell_and_its_mended_one(kernel: Kernel, replayed: Replayed) -> None:
    kernel.cells(TABLE, "cfg['lr'] = 0.1\n1 / 0", "rate = cfg['lr']", "cfg['lr'] = 0.1", "fit(cfg, rate)")
    assert replayed(kernel.found(), "cfg", "rate") == kernel.live("cfg", "rate")


def test_a_setting_of_a_failed_cell_that_was_run_again(kernel: Kernel, replayed: Replayed) -> None:
    kernel.cells(
        "import os",
        "cfg = {}",
        "os.environ['DET_SCALE'] = '3'\ncfg['a'] = 1\n1 / 0",
        "os.environ['DET_SCALE'] = '3'\ncfg['a'] = 1",
        "scale = os.environ['DET_SCALE']\ndel os.environ['DET_SCALE']",
        "fit(cfg, scale)",
    )
    found = kernel.found()
    assert replayed(found, "cfg", "scale") == kernel.live("cfg", "scale")


@pytest.mark.parametrize("skipped", ["# det-skip\ncfg['lr'] = 0.1\nprint(cgf)", "# det-skip\ncfg['lr'] = 0.1"])
def test_what_a_skipped_cell_set_and_a_later_one_sets_again(kernel: Kernel, replayed: Replayed, skipped: str) -> None:
    kernel.cells(TABLE, skipped, "cfg['lr'] = 0.1", "cfg['lr'] = 0.1", "len(cfg)", "fit(cfg)")
    found = kernel.found()
    assert found.needs_none_of(3, 6)
    assert replayed(found, "cfg") == kernel.live("cfg")


LARGE = "import numpy as np\nimport pandas as pd\nx = np.zeros((5000, 1000), dtype=np.float32)\nx[57, 3] = 100"
KEPT = (
    "class Kept:\n    def __init__(self, x):\n        self.x, self.used = x, 0\n"
    "    def clip(self):\n        np.clip(self.x, 0, 1, out=self.x)\n    def size(self):\n        self.used += 1\n"
)


@pytest.mark.parametrize(
    ("part", "change"),
    [
        ("row = x[57]", "row[:5] = 9"),
        ("row = x.reshape(-1)[57_000:58_000]", "row[:5] = 9"),
        ("rows = [x[57], x[1234]]", "for row in rows:\n    row[:5] = 9"),
        (KEPT + "kept = Kept(x)", "kept.clip()"),
        ("import torch\nrow = torch.from_numpy(x)[57]", "row[:5] = 9"),
        ("import torch\ntensor = torch.from_numpy(x)\nrow = tensor[57]\nx = tensor", "row[:5] = 9"),
        ("import torch\ntensor = torch.from_numpy(x)\nx = tensor.numpy()\nrow = tensor[57]", "row[:5] = 9"),
        ("x = pd.DataFrame(x)\nrows = x.to_numpy()", "rows[57, 3] = 9"),
    ],
)
def test_a_part_of_a_large_array_that_is_changed_by_another_name(
    kernel: Kernel, replayed: Replayed, part: str, change: str
) -> None:
    kernel.cells(LARGE, part, change, "fit(x)")
    shown = "float(np.asarray(x).sum())"
    assert replayed(kernel.found(), shown) == kernel.live(shown)


def test_another_part_of_what_has_a_large_array_is_no_change_of_it(kernel: Kernel, replayed: Replayed) -> None:
    kernel.cells(LARGE, KEPT + "kept = Kept(x)", "kept.size()", "fit(x)")
    found = kernel.found()
    assert found.needs_none_of(3, 4)
    assert replayed(found, "float(x.sum())") == kernel.live("float(x.sum())")


NODES = (
    "import numpy as np\nimport pandas as pd\nclass Node:\n    def __init__(self, value):\n        self.value = value\n"
    "        self.parts = []\ndef relabel(nodes):\n    for node in nodes:\n        node.value = 7\nother = [1]\n"
)


@pytest.mark.long
@pytest.mark.parametrize(
    ("many", "one", "change", "shown"),
    [
        ("many = [{'a': i} for i in range(9000)]", "one = many[7000]", "one['a'] = -1", "many[7000]"),
        ("many = [np.zeros(3) for i in range(9000)]", "one = many[7000]", "one += 1", "many[7000].sum()"),
        ("many = [np.zeros(3) for i in range(9000)]", "two = many[7000:7002]", "two[1][0] = 1", "many[7001].sum()"),
        ("many = [np.ones(3) for i in range(9000)]\nfor row in many:\n    row /= 2", "", "row[0] = 9", "many[-1][0]"),
        ("many = [Node(i) for i in range(9000)]", "two = [many[7000]]", "relabel(two)", "many[7000].value"),
        ("many = Node(0)\nfor i in range(5000):\n    n = Node(i)\n    many.parts.append(n)", "", "n.value = 9",
         "many.parts[-1].value"),
        ("many = {i: {'to': [i + 1]} for i in range(5000)}", "one = many[4800]['to']", "one[0] = 9", "many[4800]"),
        ("many = [pd.DataFrame({'a': range(3)}) for i in range(900)]", "one = many[850]", "one.loc[2, 'a'] = 9",
         "int(many[850].a.sum())"),
    ],
)  # fmt: skip
def test_an_element_of_a_value_that_is_too_large_to_be_seen_whole(
    kernel: Kernel, replayed: Replayed, many: str, one: str, change: str, shown: str
) -> None:
    kernel.cells(NODES + many, one or "1", change, "other.append(2)", "fit(many)")
    found = kernel.found()
    assert found.needs_none_of(5)
    assert replayed(found, shown) == kernel.live(shown)


@pytest.mark.long
@pytest.mark.parametrize(
    "other",
    [
        "cfg['lr'] = 0.5",
        "history.append({'loss': [0.1]})",
        "df['b'] = 1",
        "node.parts.append(node)",
        "counts['a'] += 1",
        "x[0] = 1",
    ],
)
def test_a_change_of_what_no_large_value_holds_leaves_it_alone(kernel: Kernel, replayed: Replayed, other: str) -> None:
    kernel.cells(
        NODES + "many = [{'a': i} for i in range(60_000)]",
        "cfg, history, node = {'lr': 0.1, 'sizes': [1, 2]}, [], Node(1)\ndf = pd.DataFrame({'a': [1, 2]})\n"
        "from collections import Counter\ncounts, x = Counter('aab'), np.zeros(10)",
        other,
        "fit(many)",
    )
    assert kernel.found().needs_none_of(3, 4)
