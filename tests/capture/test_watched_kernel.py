"""Changes that no reading of the cells finds: values are looked at after every cell."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from kernels import Kernel

pytestmark = pytest.mark.slow
Replayed = Callable[..., dict[str, Any]]

SETUP = (
    "from concurrent.futures import ThreadPoolExecutor\nstate, history = {'n': 1, 'log': []}, []\n"
    "def more(s):\n    s['n'] += 1\n"
    "table = {'more': more}\n"
)
SHOWN = ("state", "history")


@pytest.mark.parametrize(
    "change",
    [
        "list(map(more, [state]))",
        "with ThreadPoolExecutor(1) as executor:\n    executor.submit(more, state).result()",
    ],
)
def test_whatever_changed_a_value_is_sent(kernel: Kernel, replayed: Replayed, change: str) -> None:
    kernel.cells(SETUP, change, "len(history)", "fit(state, history)")
    found = kernel.found()
    assert found.needs_none_of(4)
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
