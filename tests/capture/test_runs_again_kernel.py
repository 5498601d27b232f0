"""Which cells run again, and with which values: the rules of capture, one by one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from kernels import Kernel

pytestmark = pytest.mark.slow
Replayed = Callable[..., dict[str, Any]]


def test_cells_run_out_of_order_and_again(kernel: Kernel, replayed: Replayed) -> None:
    kernel.run("scale = 2", cell="a")
    kernel.run("data = [scale * i for i in range(3)]", cell="b")
    kernel.run("scale = 10", cell="a")
    kernel.run("labels = [scale]", cell="c")
    kernel.run("fit(data, labels)")
    found = kernel.found()
    assert replayed(found, "data", "labels") == kernel.live("data", "labels") == {"data": "[0, 2, 4]", "labels": "[10]"}


LOADS = "import json\nimport math as m\ntrain = [json.dumps(m.floor(2.5))]"


def test_a_cell_that_imports_and_loads_runs_as_often_as_it_ran(kernel: Kernel, replayed: Replayed) -> None:
    kernel.run(LOADS, cell="a")
    kernel.run(LOADS, cell="a")
    kernel.run("model = [json.dumps(train)]", cell="b")
    kernel.run("fit(model, train, m)")
    found = kernel.found()
    assert found.needs_none_of(2)
    assert replayed(found, "model", "train") == kernel.live("model", "train")


def test_what_all_cells_made_again_is_needed_once(kernel: Kernel, replayed: Replayed) -> None:
    for _ in range(2):
        kernel.run(LOADS, cell="a")
        kernel.run("def make():\n    return json.dumps(train)", cell="b")
        kernel.run("model = [make()]", cell="c")
    kernel.run("fit(model, m)")
    found = kernel.found()
    assert found.needs_none_of(2, 3, 4)
    assert replayed(found, "model") == kernel.live("model")


def test_imports_come_from_the_last_run_of_their_cell(kernel: Kernel, replayed: Replayed) -> None:
    kernel.run("import json", cell="a")
    kernel.run("import json", cell="a")
    kernel.run("import json\nheavy = list(range(9))", cell="b")
    kernel.run("fit(json)")
    found = kernel.found()
    assert found.needs_none_of(2, 3)
    assert replayed(found, "json.loads('1')") == {"json.loads('1')": "1"}


def test_an_import_is_there_before_its_first_use(kernel: Kernel, replayed: Replayed) -> None:
    kernel.run("import json", cell="a")
    kernel.run("model = json.loads('[1]')", cell="b")
    kernel.run("import json\ntrain = json.loads('[2]')", cell="c")
    kernel.run("fit(model, train, json)")
    found = kernel.found()
    assert replayed(found, "model", "train") == kernel.live("model", "train")


def test_an_import_that_may_not_have_been_done_is_none(kernel: Kernel, replayed: Replayed) -> None:
    kernel.cells("import json", "if len('') > 1:\n    import json\ntrain = [1]", "fit(train, json)")
    shown = "json.loads('1'), train"
    assert replayed(kernel.found(), shown) == kernel.live(shown)
    kernel.cells("import json\nraise ValueError", "fit(json)")
    found = kernel.found()
    assert found.needs_none_of(6)
    assert replayed(found, "json.loads('1')") == {"json.loads('1')": "1"}


def test_a_name_defined_twice_with_a_use_in_between(kernel: Kernel, replayed: Replayed) -> None:
    kernel.cells("units = 4", "model = [units]", "units = 99", "fit(model)")
    found = kernel.found()
    assert found.needs_none_of(4)
    assert replayed(found, "model") == {"model": "[4]"}


CHANGES = [
    ("model = Model()", "model.add('dense')", "model.layers"),
    ("cfg = {'lr': 1}", "cfg['lr'] = 0.5", "cfg"),
    ("cfg = {'a': {'b': 1}}", "cfg['a']['b'] += 1", "cfg"),
    ("model = Model()", "model.name = 'net'", "model.name"),
    ("things = [3, 1, 2]", "things.sort()", "things"),
    ("things = [3, 1, 2]", "del things[0]", "things"),
    ("things = [3, 1, 2]", "import random\nrandom.seed(1)\nrandom.shuffle(things)", "things"),
    (
        "model = Model()\nmodel.layers = [Model()]",
        "for layer in model.layers:\n    layer.off = True",
        "model.layers[0].off",
    ),
    ("cfg = {'x': [1]}", "part = cfg['x']\npart.append(2)", "cfg"),
    ("things = []\ndef note(where):\n    where.append(1)", "note(things)", "things"),
    ("things = []\ndef note():\n    things.append(1)", "note()", "things"),
    ("total = 0\ndef count():\n    global total\n    total += 1", "count()", "total"),
    ("model = Model()", "Model.size = 3", "model.size"),
    ("model = Model()", "def size(self):\n    return len(self.layers)\nModel.size = size", "model.size()"),
    ("class Net:\n    pass\nmodel = [Net()]", "setattr(Net, 'depth', 5)", "model[0].depth"),
    (
        "class Base:\n    pass\nclass Net(Base):\n    pass\nmodel = [Net()]",
        "Base.depth = 2",
        "model[0].depth",
    ),
    (
        "class Net:\n    pass\nmodel = Net()\n"
        "def patch(cls):\n    def put(f):\n        setattr(cls, f.__name__, f)\n        return f\n    return put",
        "@patch(Net)\ndef go(self):\n    return 4",
        "model.go()",
    ),
    ("import types\nargs = types.SimpleNamespace(n=1)", "vars(args).update(n=2)", "args.n"),
    ("import types\nargs = types.SimpleNamespace(n=1)", "vars(args)['n'] += 1", "args.n"),
    (
        "from functools import singledispatch\n@singledispatch\ndef size(x):\n    return 0",
        "@size.register\ndef _(x: str):\n    return len(x)",
        "size('abc')",
    ),
    ("things = [1]", "getattr(things, 'append')(5)", "things"),
    ("things = [1]\nadd = things.append", "add(5)", "things"),
    ("import numpy as np\nx = np.arange(3.0)\nv = np.asarray(x)", "v -= v.mean()", "x.tolist()"),
    (
        "def counter():\n    n = 0\n    def up():\n        nonlocal n\n        n += 1\n        return n\n"
        "    return up\ntick = counter()",
        "tick()",
        "tick()",
    ),
]


@pytest.mark.parametrize(("setup", "change", "shown"), CHANGES)
@pytest.mark.parametrize("slow", ["setup", "change"])
def test_changes_in_place_are_not_lost_with_a_slow_cell(
    kernel: Kernel, replayed: Replayed, setup: str, change: str, shown: str, slow: str
) -> None:
    name = shown.split(".")[0].split("[")[0].split("(")[0]
    for part, source in (("setup", setup), ("change", change)):
        if part == slow:
            kernel.slowly(source)
        else:
            kernel.run(source)
    kernel.run(f"fit({name})")
    assert replayed(kernel.found(), shown) == kernel.live(shown)


def test_looking_at_a_value_does_not_change_it(kernel: Kernel, replayed: Replayed) -> None:
    kernel.cells(
        "import numpy as np\nx = np.ones(3)\nmodel = Model()",
        "print(x.mean(), x.shape, len(model.layers))",
        "x.sum()",
        "x",
        "y = x.reshape(3, 1)\ny.shape",
        "fit(model, x)",
    )
    found = kernel.found()
    assert found.needs_none_of(3, 4, 5, 6)
    assert replayed(found, "model.layers", "x") == kernel.live("model.layers", "x")


def test_an_hour_of_exploring_is_not_needed(kernel: Kernel, replayed: Replayed) -> None:
    kernel.run("import numpy as np\nx = np.arange(6.0)\ninit_done = True")
    for step in range(20):
        kernel.run(f"look_{step} = x[{step % 6}] * 2\nprint(look_{step})\nx.mean()")
    kernel.cells("import numpy as np\ntry_out = Model()\ntry_out.add(x.max())", "model = Model()", "model.fit(x)")
    found = kernel.found()
    assert found.needs_none_of(*range(3, 24))
    assert replayed(found, "x") == kernel.live("x")


def test_inits_own_execution_is_always_sent(kernel: Kernel) -> None:
    kernel.cells(
        "import det_native.capture.log as log",
        "mine = log.running_execution()  # as init() does",
        "fit(init_executions=[2])",
    )
    found = kernel.found()
    assert 3 in found.cells
    assert "calls init()" in found.row("cell [3]").note


def test_a_failed_cell_that_defines_a_needed_name(kernel: Kernel, replayed: Replayed) -> None:
    kernel.cells("x = 1", "x = 2\nraise ValueError('no')", "fit(x)")
    found = kernel.found()
    assert found.source_of(3) == "x = 2\nraise ValueError('no')"
    assert found.warnings == []
    assert replayed(found, "x") == {"x": "2"}


REFUSES = "from det_native.errors import DetError\n\ndef refuses(value=None):\n    raise DetError('no')"


def test_what_a_cell_did_before_det_native_refused_a_call_is_sent(kernel: Kernel, replayed: Replayed) -> None:
    kernel.cells("x = [1]", REFUSES, "x = [2]\nfitted = refuses(x)\nx.append(3)", "fit(x)")
    found = kernel.found()
    assert found.kind == ""
    assert replayed(found, "x") == kernel.live("x") == {"x": "[2]"}
    assert "only what stands before line 2, which failed" in found.row("cell [4]").note


def test_what_a_cell_did_before_its_waiting_was_interrupted_is_sent(kernel: Kernel, replayed: Replayed) -> None:
    waits = "from det_native.errors import interrupted\n\ndef wait():\n    raise interrupted()"
    kernel.cells(waits, "x = [2]\nwait()", "fit(x)")
    found = kernel.found()
    assert found.error == ""
    assert replayed(found, "x") == {"x": "[2]"}


@pytest.mark.parametrize(
    "failed", ["x = [2]\nfor i in range(3):\n    x.append(i)\n    refuses()", "x = [2, 0]; refuses()"]
)
def test_a_refused_call_with_others_in_one_statement_may_have_done_a_part(
    kernel: Kernel, replayed: Replayed, failed: str
) -> None:
    kernel.cells(REFUSES, failed, "fit(x)")
    found = kernel.found()
    assert replayed(found, "x") == {"x": "[2, 0]"}


def test_what_a_failed_cell_did_not_reach_does_not_count(kernel: Kernel, replayed: Replayed) -> None:
    kernel.cells("x = 1", "raise ValueError('no')\nx = 2", "y = (", "fit(x)")
    found = kernel.found()
    assert found.needs_none_of(3, 4)
    assert replayed(found, "x") == {"x": "1"}


def test_a_cell_that_failed_before_it_changed_anything_is_left_out(kernel: Kernel, replayed: Replayed) -> None:
    kernel.cells("model = Model()", "model.add(1 / 0)", "fit(model)")
    found = kernel.found()
    assert found.needs_none_of(3)
    assert found.warnings == []
    assert replayed(found, "model.layers") == kernel.live("model.layers")


def test_a_training_call_that_was_refused_has_changed_nothing(kernel: Kernel, replayed: Replayed) -> None:
    kernel.cells(
        "from det_native.errors import ArgumentError",
        "model = Model()",
        "def refuse(*_):\n    raise ArgumentError('no')\nmodel.fit = refuse",
        "history = model.fit(1)",
        "fit(model)",
    )
    found = kernel.found()
    assert found.needs_none_of(5)
    assert replayed(found, "model.layers") == {"model.layers": "[]"}
    assert found.warnings == []


def test_a_cell_that_adds_up_runs_as_often_as_it_ran(kernel: Kernel, replayed: Replayed) -> None:
    kernel.run("counter = 0", cell="a")
    for _ in range(3):
        kernel.run("counter += 1", cell="b")
    kernel.run("fit(counter)")
    assert replayed(kernel.found(), "counter") == {"counter": "3"}


def test_a_present_value_that_is_declared_needs_no_cell(kernel: Kernel, replayed: Replayed) -> None:
    kernel.run("counter = 0", cell="a")
    for _ in range(3):
        kernel.run("counter += 1", cell="b")
    kernel.run("fit(counter, values=['counter'])")
    found = kernel.found()
    assert found.needs_none_of(2, 3, 4, 5)
    assert replayed(found, "counter") == {"counter": "3"}


def test_what_a_fresh_start_has_made_anew_needs_no_earlier_run(kernel: Kernel, replayed: Replayed) -> None:
    for _ in range(2):
        kernel.run("x = [1]", cell="a")
        kernel.run("x = [x, 2]", cell="b")
    kernel.run("fit(x)")
    found = kernel.found()
    assert found.needs_none_of(2, 3)
    assert replayed(found, "x") == kernel.live("x")


def test_a_name_whose_cell_was_lost_with_the_kernel(kernel: Kernel) -> None:
    kernel.cells("def build():\n    return MyModel()", "fit(build)")
    assert (
        "`MyModel` is used by build but no executed cell defines it (the cell was edited or the kernel restarted). "
        "Run the cell that defines it, then submit again." in kernel.found().error
    )


def test_what_exec_made_is_seen(kernel: Kernel, replayed: Replayed) -> None:
    kernel.cells("exec('def helper(): return 1')", "def step():\n    return helper()", "fit(step)")
    assert replayed(kernel.found(), "step()") == {"step()": "1"}
    kernel.cells("source = 'rate = 0.' + '5'", "unrelated = 1", "exec(source)", "fit(rate)")
    found = kernel.found()
    assert found.needs_none_of(6)
    assert replayed(found, "rate") == {"rate": "0.5"}
    kernel.run("fit(rate, values=['rate'])")
    found = kernel.found()
    assert found.needs_none_of(5, 7)
    assert replayed(found, "rate") == {"rate": "0.5"}


def test_a_class_with_helpers_in_other_cells(kernel: Kernel, replayed: Replayed) -> None:
    kernel.cells(
        "import math",
        "SIZE = 3",
        "def helper(x):\n    return math.sqrt(x) + SIZE",
        "class Base:\n    def size(self):\n        return helper(4)",
        "class Trial(Base):\n    def train(self):\n        return self.size() + unused_guard()",
        "def unused_guard():\n    return 0",
        "noise = 5",
        "fit(Trial)",
    )
    found = kernel.found()
    assert found.needs_none_of(8)
    assert replayed(found, "Trial().train()") == {"Trial().train()": "5.0"}


def test_a_cell_that_is_nested_too_deeply_is_told_by_its_number(kernel: Kernel) -> None:
    kernel.cells(f"x = {' + '.join(['1'] * 900)}", "fit(x)")
    error = kernel.found().error
    assert "Cell [2]" in error
    assert "is nested too deeply to be read" in error


def test_a_lambda_over_a_global(kernel: Kernel, replayed: Replayed) -> None:
    kernel.cells("offset = 1", "shift = lambda x: x + offset", "offset = 5", "fit(shift)")
    found = kernel.found()
    assert replayed(found, "shift(1)") == {"shift(1)": "6"}


def test_a_function_that_is_sent_along_need_not_find_its_names(kernel: Kernel, replayed: Replayed) -> None:
    kernel.cells("import base64 as plt", "def show(e):\n    plt.plot(e)\nx = [1]", "fit(x)")
    found = kernel.found()
    assert found.needs_none_of(2)
    assert replayed(found, "x") == {"x": "[1]"}


def test_data_that_a_model_learnt_from_is_not_changed_even_if_it_is_gone(kernel: Kernel, replayed: Replayed) -> None:
    kernel.cells(
        "class Own:\n    def fit(self, x, y):\n        self.seen = x + y\nown = Own()",
        "X = [1]\nY = [2]",
        "total = X + Y",
        "own.fit(X, Y)",
        "kept = [X, Y]",
        "del X, Y",
        "fit(total, kept)",
    )
    found = kernel.found()
    assert found.needs_none_of(2, 5)
    assert replayed(found, "total", "kept") == {"total": "[1, 2]", "kept": "[[1], [2]]"}


def test_a_model_that_a_trainer_fits_is_changed(kernel: Kernel, replayed: Replayed) -> None:
    kernel.cells(
        "class Net:\n    weight = 0",
        "class Trainer:\n    def fit(self, net):\n        net.weight += 1\ntrainer = Trainer()",
        "net = Net()",
        "trainer.fit(net)",
        "fit(net)",
    )
    found = kernel.found()
    assert replayed(found, "net.weight") == {"net.weight": "1"}


def test_a_function_is_followed_again_when_a_name_that_it_uses_is_another_library(
    kernel: Kernel, replayed: Replayed
) -> None:
    kernel.cells(
        "import json as tools\ndef seeded():\n    tools.seed(3) if hasattr(tools, 'seed') else None",
        "seeded()\nseeded()",
        "import random\nimport random as tools",
        "seeded()",
        "x = random.random()",
        "fit(x)",
    )
    found = kernel.found()
    assert replayed(found, "x") == kernel.live("x")


@pytest.mark.parametrize(
    ("cell", "stays"), [("score = sum(range(9))", True), ("open('score.txt', 'w').write('9')", False)]
)
def test_a_cell_that_nothing_needs_runs_again_only_if_it_is_short_or_left_a_file(
    cell: str, stays: bool, kernel: Kernel
) -> None:
    kernel.cells("x = 1")
    kernel.slowly(cell)
    kernel.run("__import__('det_native').capture.log._log.executions[-1].time.elsewhere = 43.0", silent=True)
    kernel.run("fit(x)")
    found = kernel.found()
    assert found.row("cell [3]").note.startswith("stays behind: nothing needs it") == stays
