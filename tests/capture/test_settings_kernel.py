"""Settings, seeds and what modules keep, as cells of a real kernel change them: the rules of capture, one by one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from kernels import Kernel

pytestmark = pytest.mark.slow
Replayed = Callable[..., dict[str, Any]]


def test_process_wide_settings_are_made_again(kernel: Kernel, replayed: Replayed) -> None:
    kernel.cells(
        "import os, sys, random",
        "os.environ['DET_TEST_FLAG'] = 'yes'",
        "random.seed(3)",
        "def set_seed(n):\n    import numpy as np\n    np.random.seed(n)",
        "set_seed(4)",
        "shown = os.environ.get('HOME')",
        "sys.path.append('lib')",
        "fit()",
    )
    found = kernel.found()
    assert found.needs_none_of(7)
    assert replayed(found, "os.environ['DET_TEST_FLAG']", "random.random()")["random.random()"] == "0.23796462709189137"
    kernel.run("del os.environ['DET_TEST_FLAG']; sys.path.remove('lib')")


@pytest.mark.parametrize(
    ("imports", "sets", "shown"),
    [
        ("import matplotlib.pyplot as plt", "plt.style.use('ggplot')", "plt.rcParams['axes.grid']"),
        ("import sklearn", "sklearn.set_config(assume_finite=True)", "sklearn.get_config()['assume_finite']"),
        ("import sys", "sys.setrecursionlimit(4321)", "sys.getrecursionlimit()"),
        ("import decimal", "decimal.getcontext().prec = 11", "decimal.getcontext().prec"),
    ],
)
def test_a_slow_cell_that_sets_something_for_the_process_runs_again_and_is_named(
    kernel: Kernel, replayed: Replayed, imports: str, sets: str, shown: str
) -> None:
    kernel.run(f"import sys, decimal\nlimit, context = sys.getrecursionlimit(), decimal.getcontext().copy()\n{imports}")
    kernel.slowly(f"{sets}\nrows = [1]")
    kernel.run("fit(rows)")
    found = kernel.found()
    live = kernel.live(shown)
    kernel.run("sys.setrecursionlimit(limit); decimal.setcontext(context)", silent=True)
    kernel.run("import sklearn; sklearn.set_config(assume_finite=False)", silent=True)
    assert replayed(found, shown) == live
    [warning] = found.warnings
    assert warning.startswith("Cell [3] took 45.0 s. It will run once per trial and once per restart, because")


def test_a_literal_setting_of_a_slow_cell_is_repeated_without_it(kernel: Kernel, replayed: Replayed) -> None:
    kernel.run("import matplotlib.pyplot as plt")
    kernel.slowly("plt.rcParams['figure.dpi'] = 91\nrows = [n for n in range(3)]")
    kernel.run("fit(rows)")
    found = kernel.found()
    assert found.warnings == []
    assert "stays behind, but for its imports" in found.row("cell [3]").note
    assert replayed(found, "plt.rcParams['figure.dpi']") == kernel.live("plt.rcParams['figure.dpi']")


def test_a_seed_that_is_set_again_and_again_need_not_be_sent(kernel: Kernel, replayed: Replayed) -> None:
    kernel.run("import random", cell="i")
    for _ in range(3):
        kernel.run("random.seed(7)", cell="s")
    kernel.run("x = random.random()\nfit(x)")
    found = kernel.found()
    assert found.needs_none_of(3, 4, 5)
    assert replayed(found, "x") == kernel.live("x")


def test_numbers_drawn_in_between_belong_to_a_seeded_stream(kernel: Kernel, replayed: Replayed) -> None:
    kernel.cells(
        "import numpy as np\nnp.random.seed(0)",
        "peek = np.random.rand(4)",
        "x = np.random.rand(2)",
        "fit(x)",
    )
    found = kernel.found()
    assert replayed(found, "x") == kernel.live("x")


@pytest.mark.parametrize("peek", ["df.sample(3)", "df[df.a > 2].sample(3)", "print(df.sample(n=2))"])
def test_a_look_at_some_rows_draws_from_a_seeded_stream(kernel: Kernel, replayed: Replayed, peek: str) -> None:
    kernel.cells(
        "import numpy as np, pandas as pd\ndf = pd.DataFrame({'a': range(20)})",
        "np.random.seed(1)",
        peek,
        "df.sample(3, random_state=0)",
        "rows = list(df.sample(frac=0.5).index)",
        "fit(rows)",
    )
    found = kernel.found()
    assert found.needs_none_of(5)
    assert replayed(found, "rows") == kernel.live("rows")


@pytest.mark.parametrize("draw", ["w.normal_()", "torch.zeros(2).uniform_()", "torch.nn.init.xavier_uniform_(w)"])
def test_numbers_drawn_in_place_belong_to_a_seeded_stream(kernel: Kernel, replayed: Replayed, draw: str) -> None:
    kernel.cells(
        "import torch\nw = torch.zeros(2, 2)", "torch.manual_seed(1)", draw, "x = torch.rand(2).tolist()", "fit(x)"
    )
    found = kernel.found()
    assert replayed(found, "x") == kernel.live("x")


@pytest.mark.parametrize(
    "look",
    [
        "import numpy as np\nnp.mean([1, 2])",
        "print(data)",
    ],
)
def test_a_call_that_looks_at_data_or_shows_a_value_is_not_needed(kernel: Kernel, look: str) -> None:
    kernel.cells("data = [1, 2]", look, "fit(data)")
    assert kernel.found().needs_none_of(3)


def test_a_variable_is_set_by_a_magic_and_an_extension_is_not_loaded(kernel: Kernel, replayed: Replayed) -> None:
    kernel.cells("%load_ext autoreload", "%env DET_TEST_MAGIC=1", "fit()")
    found = kernel.found()
    assert found.needs_none_of(2)
    kernel.run("import os\ndel os.environ['DET_TEST_MAGIC']")
    shown = "__import__('os').environ['DET_TEST_MAGIC']"
    assert replayed(found, shown) == {shown: "'1'"}


def test_a_variable_that_is_set_for_a_while_only_is_no_setting(kernel: Kernel, replayed: Replayed) -> None:
    kernel.cells(
        "import os\nfrom unittest import mock",
        "with mock.patch.dict(os.environ, DET_TEST_A_WHILE='1'):\n    inside = os.environ['DET_TEST_A_WHILE']",
        "os.environ['HOME'] = os.environ['HOME']",  # on the worker it may be another one
        "with mock.patch.dict(os.environ):\n    os.environ['DET_TEST_A_WHILE'] = '2'",
        "with mock.patch.dict(os.environ):\n    pass\nos.environ['DET_TEST_KEPT'] = '3'",
        "fit()",
    )
    try:
        found = kernel.found()
        assert found.needs_none_of(3)
        reasons = {each.number: each.reason for each in found.program.cells}
        assert "os.environ['HOME']" in reasons[4]
        assert "os.environ['DET_TEST_KEPT']" in reasons[6]
        assert "HOME" not in reasons[6]
        assert replayed(found, "os.environ['DET_TEST_KEPT']") == {"os.environ['DET_TEST_KEPT']": "'3'"}
    finally:
        kernel.run("del os.environ['DET_TEST_KEPT']")
