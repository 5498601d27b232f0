"""What travels in place of an expensive cell: models, objects of classes of cells, what several names share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from kernels import Found, Kernel

pytestmark = pytest.mark.slow
Replayed = Callable[..., dict[str, Any]]
NET = (
    "import torch\n"
    "class Net(torch.nn.Module):\n"
    "    def __init__(self):\n"
    "        super().__init__()\n"
    "        self.layer, self.norm = torch.nn.Linear(3, 2), torch.nn.BatchNorm1d(2)\n"
    "        self.calls = 0\n"
    "    def forward(self, x):\n"
    "        self.calls += 1\n"
    "        return self.norm(self.layer(x))"
)
TRAINING = (
    "for _ in range(3):\n"
    "    optimizer.zero_grad()\n"
    "    model(torch.randn(8, 3)).pow(2).sum().backward()\n"
    "    optimizer.step()"
)
WEIGHTS = "[one.tolist() for one in model.state_dict().values()]"
MOMENTS = "[one['exp_avg'].tolist() for one in optimizer.state.values()]"
SAME = "[one is two for one, two in zip(optimizer.param_groups[0]['params'], model.parameters())]"


def slowly(kernel: Kernel, source: str) -> None:
    """Execute a cell that counts as one that took most of a minute."""
    printed = kernel.run(source)
    assert "Traceback" not in printed, printed
    kernel.run("import det_native.capture.log as _l\n_l._log.executions[-1].time.duration = 45.0\ndel _l", silent=True)


def found(kernel: Kernel, *names: str, options: str = "") -> Found:
    kernel.run(f"fit({', '.join(names)}{options})")
    return kernel.found()


def is_left(program: Found, *numbers: int) -> bool:
    """Whether of these cells no more than settings is sent."""
    return all(program.row(f"cell [{number}]").how == "stays" for number in numbers)


def test_what_a_model_learned_goes_into_the_model_that_is_built_again(kernel: Kernel, replayed: Replayed) -> None:
    kernel.cells(NET, "model = Net()\noptimizer = torch.optim.Adam(model.parameters())\nparts = {'m': model}")
    slowly(kernel, f"{TRAINING}\nmodel.eval()\nmodel.layer.weight.requires_grad_(False)")
    program = found(kernel, "model", "optimizer", "parts")
    assert is_left(program, 4)
    shown = (WEIGHTS, MOMENTS, SAME, "parts['m'] is model", "model.training", "model.calls")
    assert replayed(program, *shown) == kernel.live(*shown)
    assert "False" not in kernel.live(SAME)[SAME]


def test_a_model_that_a_slow_cell_built_travels_whole_with_its_optimizer(kernel: Kernel, replayed: Replayed) -> None:
    kernel.run(NET)
    slowly(kernel, f"model = Net()\noptimizer = torch.optim.Adam(model.parameters())\n{TRAINING}")
    program = found(kernel, "model", "optimizer")
    assert is_left(program, 3)
    shown = (WEIGHTS, MOMENTS, SAME, "type(model) is Net", "isinstance(model, torch.nn.Module)")
    assert replayed(program, *shown) == kernel.live(*shown)


@pytest.mark.long
def test_an_optimizer_of_a_slow_cell_refers_to_the_model_of_a_quick_one(kernel: Kernel, replayed: Replayed) -> None:
    kernel.cells(NET, "model = Net()")
    slowly(kernel, f"optimizer = torch.optim.Adam(model.parameters())\n{TRAINING}")
    program = found(kernel, "model", "optimizer")
    assert is_left(program, 4)
    assert replayed(program, SAME, WEIGHTS, MOMENTS) == kernel.live(SAME, WEIGHTS, MOMENTS)


@pytest.mark.long
def test_an_optimizer_refers_to_a_model_that_its_slow_cell_did_not_change(kernel: Kernel, replayed: Replayed) -> None:
    kernel.cells(NET, "torch.manual_seed(1)\nmodel = Net()")
    slowly(kernel, "optimizer = torch.optim.Adam(model.parameters())")
    program = found(kernel, "model", "optimizer")
    assert is_left(program, 4)
    assert replayed(program, SAME, WEIGHTS) == kernel.live(SAME, WEIGHTS)


@pytest.mark.long
def test_a_model_that_cannot_be_pickled_gets_its_weights(kernel: Kernel, replayed: Replayed) -> None:
    kernel.cells(NET, "model = Net()\nmodel.register_forward_hook(lambda *_: None)")
    slowly(kernel, "optimizer = torch.optim.Adam(model.parameters())\n" + TRAINING + "\ndel optimizer")
    program = found(kernel, "model")
    assert is_left(program, 4)
    assert replayed(program, WEIGHTS, "len(model._forward_hooks)") == kernel.live(WEIGHTS, "len(model._forward_hooks)")


@pytest.mark.long
def test_schedules_and_generators_go_on_where_they_were(kernel: Kernel, replayed: Replayed) -> None:
    kernel.cells(
        NET,
        "model = Net()\noptimizer = torch.optim.SGD(model.parameters(), lr=1.0)\n"
        "schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1, gamma=0.5)\ndraws = torch.Generator()",
    )
    slowly(kernel, "optimizer.step()\nschedule.step()\nfirst = torch.rand(2, generator=draws)")
    program = found(kernel, "model", "optimizer", "schedule", "draws")
    assert is_left(program, 4)
    shown = ("schedule.last_epoch", "optimizer.param_groups[0]['lr']", "schedule.optimizer is optimizer")
    shown = (*shown, "draws.get_state().sum().item()")
    assert replayed(program, *shown) == kernel.live(*shown)


@pytest.mark.parametrize(
    ("classes", "made", "shown"),
    [
        ("from dataclasses import dataclass\n@dataclass\nclass Point:\n    x: int", "Point(3)", "thing.x"),
        ("from typing import NamedTuple\nclass Point(NamedTuple):\n    x: int", "Point(3)", "thing.x"),
        ("import enum\nclass Point(enum.Enum):\n    A = 1", "Point.A", "thing is Point.A"),
        (
            "import numpy as np\nclass Base: pass\nclass Point(Base):\n"
            "    def __init__(self):\n        self.x = np.arange(3)",
            "Point()",
            "isinstance(thing, Base), thing.x.tolist()",
        ),
        ("class Point(dict):\n    def __init__(self, n):\n        super().__init__(n=n)", "Point(2)", "thing['n']"),
    ],
    ids=["dataclass", "named tuple", "enum", "arrays", "subclass"],
)
def test_an_object_of_a_class_of_a_cell_is_of_that_class_there(
    kernel: Kernel, replayed: Replayed, classes: str, made: str, shown: str
) -> None:
    kernel.run(classes)
    slowly(kernel, f"thing = {made}\nmany = [thing, thing]")
    program = found(kernel, "many", "thing", "Point")
    assert is_left(program, 3)
    shows = ("type(thing) is Point", "many[0] is thing", shown)
    assert replayed(program, *shows) == kernel.live(*shows)


def test_a_class_that_a_slow_cell_defines_is_defined_by_it_again(kernel: Kernel, replayed: Replayed) -> None:
    slowly(kernel, "class Point:\n    def __init__(self, x):\n        self.x = x\nthing = Point([1])")
    program = found(kernel, "thing", "Point")
    assert "thing" not in program.source_of(2)
    assert replayed(program, "thing.x", "type(thing) is Point") == kernel.live("thing.x", "type(thing) is Point")


def test_an_object_of_a_class_that_was_made_anew_does_not_travel(kernel: Kernel, replayed: Replayed) -> None:
    kernel.run("class Point:\n    x = 1")
    slowly(kernel, "thing = Point()")
    kernel.run("class Point:\n    x = 2")
    program = found(kernel, "thing")
    assert program.row("cell [3]").note.startswith("`thing` is needed and cannot travel")
    assert replayed(program, "thing.x") == kernel.live("thing.x") == {"thing.x": "1"}


NET_AND_TRAINING = (
    "import torch\nnet = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 1))",
    "net(torch.ones(3, 2)).sum().backward()\nwith torch.no_grad():\n    net[0].weight -= net[0].weight.grad",
)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        (
            "net[1] = torch.nn.Linear(2, 1)\nfit(net)",
            "since cell [4], which makes the call, changes `net`. Move that change to a separate cell.",
        ),
        (
            "fit(net, ds)",
            "as `ds` is needed and cannot be sent (torch.utils.data.dataset.TensorDataset). "
            "Make `ds` in a cell of its own.",
        ),
        (
            "fit(Config)",
            "as `Config` is needed and cannot be sent (what it holds is not what its cell makes). "
            "Change `Config` in a cell of its own.",
        ),
    ],
)
def test_a_slow_cell_that_runs_again_is_named_with_its_seconds_and_the_reason(
    kernel: Kernel, changes: str, why: str
) -> None:
    makes, trains = NET_AND_TRAINING
    kernel.run(f"{makes}\nclass Config:\n    rate = 1")
    slowly(kernel, f"{trains}\nds = torch.utils.data.TensorDataset(torch.ones(3))\nConfig.rate = 2")
    kernel.run(changes)
    program = kernel.found()
    [warning] = program.warnings
    assert warning == f"Cell [3] took 45.0 s. It will run once per trial and once per restart, {why}"
    assert "nothing needs it" not in program.row("cell [3]").note


def test_a_slow_cell_stays_behind_once_that_has_a_cell_of_its_own(kernel: Kernel) -> None:
    makes, trains = NET_AND_TRAINING
    kernel.run(makes)
    slowly(kernel, trains)
    kernel.cells("net[1] = torch.nn.Linear(2, 1)", "fit(net)")
    program = kernel.found()
    assert program.warnings == []
    assert is_left(program, 3)


def test_an_object_whose_class_stays_behind_is_refused_by_its_cell(kernel: Kernel) -> None:
    kernel.run("class Point:\n    x = 1", tags=("det-skip",))
    slowly(kernel, "thing = Point()")
    error = found(kernel, "thing").error
    assert "`Point`" in error
    assert "cell [2], which cannot run again (tagged det-skip)" in error


def test_a_function_in_a_value_is_the_one_of_its_cell(kernel: Kernel, replayed: Replayed) -> None:
    kernel.cells("import functools\ndef scale(x, by):\n    return x * by", "half = lambda x: x // 2")
    slowly(kernel, "steps = {'twice': functools.partial(scale, by=2), 'half': half}")
    program = found(kernel, "steps")
    assert is_left(program, 4)
    shown = ("steps['twice'].func is scale", "steps['half'] is half", "steps['twice'](4)")
    assert replayed(program, *shown) == kernel.live(*shown)


def test_names_of_one_object_have_one_there(kernel: Kernel, replayed: Replayed) -> None:
    slowly(kernel, "import numpy as np\na = [1]\nb = {'x': a}\nc = np.arange(4.0)\nd = (c, a)\nf = a")
    program = found(kernel, "a", "b", "c", "d", "f")
    shown = ("b['x'] is a", "d[0] is c", "d[1] is a", "f is a", "(a, b, c.tolist())")
    assert replayed(program, *shown) == kernel.live(*shown)
    assert len({value[2] for value in program.values}) == 1


def test_what_holds_an_object_of_a_quick_cell_sees_its_change(kernel: Kernel, replayed: Replayed) -> None:
    kernel.cells(
        "import numpy as np\nfrom collections import deque",
        "a, s, q, n = [1], {1}, deque([1]), np.zeros(3)\nview = n[:2]",
        "import sys\nsys.held = (a, s, q, view)",
    )
    slowly(kernel, "a.append(2); s.add(2); q.append(2); n[0] = 1; b = {'x': a}")
    program = found(kernel, "a", "s", "q", "n", "b")
    assert is_left(program, 5)
    shown = ("repr(__import__('sys').held)", "b['x'] is a")
    assert replayed(program, *shown) == kernel.live(*shown)


def test_what_a_slow_cell_binds_anew_leaves_the_old_object_alone(kernel: Kernel, replayed: Replayed) -> None:
    kernel.run("a = [1]\nb = a")
    slowly(kernel, "a = [1, 2]")
    program = found(kernel, "a", "b")
    assert replayed(program, "a", "b") == kernel.live("a", "b") == {"a": "[1, 2]", "b": "[1]"}


def test_a_secret_deep_in_an_object_does_not_travel(kernel: Kernel) -> None:
    key = "AKIA" + "IOSFODNN7EXAMPLE"
    kernel.run("class Client:\n    pass")
    kernel.run("import os; os.environ['DET_KEY'] = '" + key[:4] + "' + '" + key[4:] + "'", silent=True)
    slowly(kernel, "import os\nclient = Client()\nclient.settings = {'headers': [os.environ['DET_KEY']]}")
    program = found(kernel, "client")
    assert key not in str(program)
    assert program.row("cell [3]").note.startswith("`client` is needed and cannot travel")


@pytest.mark.long
def test_what_is_over_the_room_is_made_again_and_travels_when_declared(kernel: Kernel, replayed: Replayed) -> None:
    kernel.run("import torch")
    slowly(kernel, "model = torch.nn.Linear(4096, 4200)")
    program = found(kernel, "model")
    assert program.row("cell [3]").note.startswith("`model` is needed and cannot travel")
    program = found(kernel, "model", options=", values=['model']")
    assert program.value_names == {"model"}
    shown = ("float(model.weight.sum())", "tuple(model.weight.shape)")
    assert replayed(program, *shown) == kernel.live(*shown)


@pytest.mark.parametrize(
    ("drawn", "shown"),
    [
        ("import numpy as np\nrng = np.random.default_rng()\nx = rng.normal(size=200_000)", "float(x.sum())"),
        ("import numpy as np\nx = {'a': [np.random.default_rng().integers(0, 9, 5)]}", "x['a'][0].tolist()"),
        ("import numpy as np\nseed = None\nx = np.random.RandomState(seed).rand(5)", "x.tolist()"),
        ("import random\nx = random.SystemRandom().sample(range(1000), 5)", "x"),
        ("import uuid\nx = [uuid.uuid4().hex]", "x"),
        ("import os\nx = os.urandom(4)", "x"),
        ("import secrets\nx = secrets.randbelow(10**9)", "x"),
    ],
    ids=["default_rng", "nested", "RandomState", "SystemRandom", "uuid", "urandom", "secrets"],
)
def test_what_was_drawn_without_a_seed_travels(kernel: Kernel, replayed: Replayed, drawn: str, shown: str) -> None:
    kernel.cells(drawn, "y = [x]", "import random as r\nr.seed(1)\nz = [1]")
    program = found(kernel, "x", "y", "z")
    assert {"x", "y"} <= program.value_names
    assert "z" not in program.value_names
    assert {2, 4} <= set(program.cells)
    assert replayed(program, shown, "str(y[0]) == str(x)") == kernel.live(shown, "str(y[0]) == str(x)")


def test_places_of_the_machine_stay_there(kernel: Kernel) -> None:
    made = "import pathlib, tempfile, uuid\nrun = uuid.uuid4().hex\ntmp = tempfile.gettempdir()\n"
    kernel.cells(f"{made}folder = pathlib.Path.cwd() / run")
    assert found(kernel, "run", "tmp", "folder").value_names == {"run"}


def test_a_generator_without_a_seed_goes_on_where_it_was(kernel: Kernel, replayed: Replayed) -> None:
    kernel.cells("import numpy as np", "rng = np.random.default_rng()", "x = rng.normal(size=3)")
    program = found(kernel, "x", "rng")
    shown = ("x.tolist()", "rng.bit_generator.state['state']")
    assert replayed(program, *shown) == kernel.live(*shown)


def test_a_row_says_what_was_drawn_without_a_seed_and_cannot_travel(kernel: Kernel) -> None:
    kernel.cells("import numpy as np", "rng = np.random.default_rng()", "x = rng.normal(size=9_000_000)")
    program = found(kernel, "x")
    assert program.value_names == set()
    assert program.row("rng").note.startswith("drawn without a seed; cannot travel")


@pytest.mark.parametrize(
    "generator",
    [
        "np.random.default_rng(3)",
        "np.random.RandomState(3)",
        "np.random.RandomState(\n    seed=SEED\n)",
        "make(SEED)",
    ],
)
def test_a_seeded_generator_draws_again(kernel: Kernel, replayed: Replayed, generator: str) -> None:
    made = "def make(seed):\n    return np.random.RandomState(seed + 1)"
    kernel.cells(f"import numpy as np\n{made}", "SEED = 3", f"x = {generator}.normal(size=3)")
    program = found(kernel, "x")
    assert program.value_names == set()
    assert replayed(program, "x.tolist()") == kernel.live("x.tolist()")


# Each sets another value: the class keeps it in a kernel that the tests share.
@pytest.mark.parametrize("setting", ["setattr(Shelf, 'zz', 4)", "shelve.Shelf.zz = int('5')", "Shelf.zz = int('6')"])
def test_a_slow_cell_that_sets_an_attribute_of_a_librarys_class_runs_again(
    kernel: Kernel, replayed: Replayed, setting: str
) -> None:
    kernel.run("import shelve\nfrom shelve import Shelf")
    slowly(kernel, f"{setting}\nx = [1]")
    program = found(kernel, "x")
    assert program.row("cell [3]").note.startswith("sets Shelf.zz")
    assert replayed(program, "Shelf.zz", "x") == kernel.live("Shelf.zz", "x")


@pytest.mark.parametrize(
    ("setting", "shown"),
    [
        ("pd.set_option('display.max_columns', 7)", "pd.get_option('display.max_columns')"),
        ("pd.DataFrame.zz = 3", "pd.DataFrame.zz"),
        ("DataFrame.zz = 3", "pd.DataFrame.zz"),
    ],
)
def test_what_a_slow_cell_sets_in_a_library_is_set_there(
    kernel: Kernel, replayed: Replayed, setting: str, shown: str
) -> None:
    kernel.run("import pandas as pd\nfrom pandas import DataFrame")
    slowly(kernel, f"{setting}\nx = [1]")
    program = found(kernel, "x", "pd")
    assert replayed(program, shown) == kernel.live(shown)


def test_what_has_nothing_random_in_it_was_not_drawn(kernel: Kernel, replayed: Replayed) -> None:
    kernel.run(
        "import numpy as np\nfrom collections import defaultdict\ndl = defaultdict(lambda: 5)\n"
        "kept = defaultdict(lambda: 5, a=np.random.default_rng().random())"
    )
    program = found(kernel, "dl", "kept")
    assert [row.what for row in program.rows if row.how == "drawn"] == ["kept"]
    assert replayed(program, "dl['x']") == {"dl['x']": "5"}
