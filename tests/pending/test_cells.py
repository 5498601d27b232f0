"""Does a cell wait before it runs? What it reads says so."""

from __future__ import annotations

import textwrap

import pytest
from in_process import ShellKernel

SETTING = """
import functools
import numpy as np
import det_native as det

model = Wrapped(2, 2)
other = Wrapped(2, 2)
optimizer = torch.optim.Adam(model.parameters())
nets = {"first": [other, model]}
names = ["a", "b"]
weight = model.weight
state = model.state_dict()
score = functools.partial(torch.nn.Module.state_dict, model)

class Trainer:
    def __init__(self, model):
        self.model, self.name = model, "a"
        self.losses = []
    def score(self):
        return self.model.weight.sum()

trainer = Trainer(model)

def scored(data):
    return model(data)

def scored_twice(data):
    return scored(scored(data))

def scorer(net):
    return lambda data: net(data)

closure = scorer(model)
handle = model.fit()
decided.clear()
"""
READS = [
    "model.weight",
    "print(model)",
    "if False:\n    model.weight",
    "try:\n    model\nexcept NameError:\n    pass",
    "optimizer.state_dict()",
    "nets['first'][1].weight",
    "weight.sum()",
    "state['weight']",
    "score()",
    "trainer.score()",
    "trainer.model.weight",
    "scored(torch.ones(2))",
    "scored_twice(torch.ones(2))",
    "closure(torch.ones(2))",
    "def later():\n    return model.weight\nlater()",
    "f = lambda: model.weight\nf()",
    "class Child(Trainer):\n    net = model",
    "[net.weight for net in nets['first']]",
    "eval('model')",
    "exec('print(mo' + 'del)')",
    "globals()['model']",
    "%timeit -n 1 -r 1 scored(torch.ones(2))",
    "%time scored(torch.ones(2))",
    "%%time\nscored(torch.ones(2))",
    "%%capture out\nscored(torch.ones(2))",
    "torch.save(model, 'a.pt')",
    "net = model",
    "x = 1; model = model",
    "model.training = False",
    "det.forget(nets) or model",
]
READS_NOT = [
    "handle",
    "print(handle)",
    "x = 1",
    "other.weight.sum()",
    "model = Wrapped(2, 2)\nmodel.weight",
    "for model in [other]:\n    print(model.weight)",
    "def later():\n    return model.weight",
    "del model",
    "names.append('c')",
    "len(names)",
    "trainer.name",
    "trainer.losses.append(1)",
    "trainer.note = 1",
    "nets['second'] = [other]",
    "det.forget(model)",
    "np.ones(3)",
    "torch.manual_seed(1)",
    "%matplotlib inline",
    "!echo nothing",
    "%%bash\necho model",
    "this is no Python",
    "import json\njson.dumps(names)",
    "with open('/dev/null') as file:\n    print(file.name)",
]


@pytest.fixture(scope="module")
def waiting(notebook: ShellKernel) -> dict[str, bool]:
    """Which of the cells wait in a notebook in which `model` is trained somewhere else."""
    assert "Error" not in notebook.run(textwrap.dedent(SETTING))
    told = notebook.live(*(f"needs({cell!r}, globals())" for cell in READS + READS_NOT))
    return dict(zip(READS + READS_NOT, (one == "True" for one in told.values()), strict=True))


def _waits(notebook: ShellKernel, cell: str) -> bool:
    return notebook.live(f"needs({cell!r}, globals())").popitem()[1] == "True"


@pytest.mark.parametrize("cell", READS)
def test_a_cell_that_leads_to_the_model_waits(waiting: dict[str, bool], cell: str) -> None:
    assert waiting[cell]


@pytest.mark.parametrize("cell", READS_NOT)
def test_a_cell_that_does_without_the_model_runs(waiting: dict[str, bool], cell: str) -> None:
    assert not waiting[cell]


def test_a_model_that_nobody_has_is_forgotten(notebook: ShellKernel) -> None:
    notebook.run("net = Wrapped(2, 2)\nhandle = net.fit()\nfrom det_native.pending import registry")
    count = "sum(type(one.call.models[0]) is Wrapped for one in registry.pending())"
    before = int(notebook.live(count)[count])
    notebook.run("import gc\ndel net\ngc.collect()")
    assert int(notebook.live(count)[count]) == before - 1


def test_a_parameter_is_enough_to_remember_a_training(notebook: ShellKernel) -> None:
    notebook.run("net = Wrapped(2, 2)\nhandle = net.fit()\nkept = net.weight\nimport gc\ndel net\ngc.collect()")
    assert _waits(notebook, "kept.sum()")


def test_weights_that_were_set_by_hand_are_known(notebook: ShellKernel) -> None:
    notebook.run("net = Wrapped(2, 2)\nhandle = net.fit()\nfrom det_native.pending.registry import pending")
    assert notebook.live("pending()[-1].is_overwritten()").popitem()[1] == "False"
    notebook.run("net.load_state_dict(Wrapped(2, 2).state_dict())", silent=True)
    assert notebook.live("pending()[-1].is_overwritten()").popitem()[1] == "True"


def test_to_forget_ends_the_waiting(notebook: ShellKernel) -> None:
    notebook.run("net = Wrapped(2, 2)\nhandle = net.fit()\nheld = {'a': net}\nimport det_native as det")
    assert _waits(notebook, "net.weight")
    notebook.run("det.forget(held)")
    assert not _waits(notebook, "net.weight")


def test_the_look_before_a_cell_costs_nothing_where_nothing_is_pending(notebook: ShellKernel) -> None:
    notebook.run(
        """
        import timeit
        from det_native.pending import registry
        from det_native.pending.cells import watch_cells
        from det_native.capture.log import current_log
        for one in registry.pending():
            registry.end(one)
        watch_cells()
        [prepare] = current_log().before_cells
        seconds = min(timeit.repeat(lambda: prepare("print(model)\\n" * 100), number=100, repeat=5)) / 100
        """
    )
    assert float(notebook.live("seconds")["seconds"]) < 1e-3
