"""What the user calls a model: names of the notebook, of functions that are running, and of what holds it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from in_process import ShellKernel


@pytest.fixture(scope="module")
def notebook(shell: ShellKernel, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ShellKernel]:
    """A notebook with a model."""
    shell.begin(tmp_path_factory.mktemp("cells"))
    shell.run("import torch\nmodel = torch.nn.Linear(2, 2)")
    yield shell
    shell.end()


def test_names_of_the_notebook_and_of_what_holds_a_model(notebook: ShellKernel) -> None:
    notebook.run(
        """
from det_native.home.naming import names_of
class Trainer:
    def __init__(self):
        self.net, self._hidden = torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)
trainer, nets, by_name = Trainer(), [torch.nn.Linear(2, 2)], {"a": torch.nn.Linear(2, 2)}
_secret = torch.nn.Linear(2, 2)
"""
    )
    models = "[model, trainer.net, nets[0], by_name['a'], trainer._hidden, _secret]"
    assert notebook.run(f"names = names_of({models})\nprint(names)").strip() == str(
        ["model", "trainer.net", "nets[0]", "by_name['a']", "", ""]
    )


def test_a_name_of_a_function_that_is_running(notebook: ShellKernel) -> None:
    notebook.run(
        "from det_native.home.naming import names_of\n"
        "def run():\n    net = torch.nn.Linear(2, 2)\n    return names_of([net])"
    )
    assert notebook.run("print(run())").strip() == str(["net"])
