"""An argument that an installed library no longer takes: the error says so, on the cluster and here."""

from __future__ import annotations

import sys
import types
from pathlib import Path
from typing import Any

import pytest
import torch
import torch._dynamo  # the first optimizer imports it, which makes a folder and sets a variable for good
from det_harness.local.run import run_local
from det_harness.program.calls import ProgramSource
from det_harness.program.unknown_arguments import argument_advice
from det_harness.program.user_errors import advised, describe

from det_native.schema.environment import TrialEnvironment
from det_native.schema.manifests import Program

NET = torch.nn.Linear(1, 1)


class Linear(torch.nn.Module):
    """One of the user's, by the name of a library's."""

    def __init__(self, *, width: int = 1) -> None:
        super().__init__()


def plateau() -> Any:
    optimizer = torch.optim.SGD(NET.parameters(), lr=0.1)
    return torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, verbose=True)


def failing(call: Any) -> TypeError:
    with pytest.raises(TypeError) as caught:
        call()
    return caught.value


def test_the_library_and_what_its_function_takes_are_named() -> None:
    advice = argument_advice(failing(plateau))
    assert advice is not None
    assert advice.startswith(f"torch {torch.__version__.partition('+')[0]}")
    assert "ReduceLROnPlateau() has no argument 'verbose' (it takes optimizer, mode, factor, patience" in advice
    assert advice.endswith("code for another version gives it. Leave it out.")


class ReduceLROnPlateau:
    """As Keras has one, with this argument."""

    def __init__(self, verbose: int = 0) -> None:
        """Take it."""


def test_another_library_with_a_function_of_that_name_takes_the_argument(monkeypatch: pytest.MonkeyPatch) -> None:
    other = types.ModuleType("another_library")
    other.ReduceLROnPlateau = ReduceLROnPlateau  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "another_library", other)
    advice = argument_advice(failing(plateau))
    assert advice is not None
    assert advice.startswith("torch ")


@pytest.mark.parametrize(
    "call",
    [
        lambda: Linear(height=1),  # type: ignore[call-arg]
        lambda: failing(verbose=True),  # type: ignore[call-arg]
        lambda: int("x", base=None),  # type: ignore[arg-type]
    ],
)
def test_the_users_own_functions_and_other_errors_have_no_advice(call: Any) -> None:
    assert argument_advice(failing(call)) is None


def test_an_error_on_a_worker_and_one_here_say_it(tmp_path: Path) -> None:
    error = failing(plateau)
    source = ProgramSource(Program(kind="cells", framework="torch"), tmp_path)
    info = advised(describe(error, source), error, TrialEnvironment(config={}, hparams={}))
    assert "has no argument 'verbose'" in info.message
    assert "has no argument 'verbose'" in info.traceback
    config = {"searcher": {"name": "single", "metric": "loss", "max_length": {"batches": 1}}}
    made = {"hparams": {}, "trial_seed": 1, "directory": tmp_path, "framework": "torch"}
    with pytest.raises(TypeError) as caught:
        run_local(lambda services: plateau(), config=config, **made)
    assert "has no argument 'verbose'" in caught.value.__notes__[0]
