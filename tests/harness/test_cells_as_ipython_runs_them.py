"""A worker compiles and runs a cell as IPython does: statement by statement, with the value of its last expression."""

from __future__ import annotations

import builtins
import types
from pathlib import Path
from typing import Any

import pytest
from IPython.core.interactiveshell import InteractiveShell
from program_parts import TRAIN, install_api, run

from det_native.schema.manifests import CallSite, Cell

IMPORT_BESIDE_A_CLASS = """
import math
import os.path as path
class Net:
    def forward(self, x):
        return math.sqrt(x) + len(path.basename(str(x)))
scale = lambda x: math.floor(x)
"""


@pytest.fixture(autouse=True)
def _api(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install_api(tmp_path, monkeypatch)


@pytest.fixture
def shell(monkeypatch: pytest.MonkeyPatch) -> Any:
    for name in ("display", "__IPYTHON__"):  # which a shell adds for good
        monkeypatch.setattr(builtins, name, None, raising=False)
    return InteractiveShell()


def program(tmp_path: Path, *sources: str) -> dict[str, Any]:
    """Run cells, and a last one that makes the training call; return the names of the program."""
    cells = [
        Cell(number=place + 1, cell_id=None, source=source)
        for place, source in enumerate((*sources, f"{TRAIN}\ntrain()"))
    ]
    call = CallSite(kind="create", cell=len(sources), line=2, column=0, occurrence=1)
    _, runner = run(tmp_path, cells, call)
    return vars(runner.module)


def test_functions_have_the_code_that_ipython_gives_them(tmp_path: Path, shell: Any) -> None:
    shell.run_cell(IMPORT_BESIDE_A_CLASS).raise_error()
    names = program(tmp_path, IMPORT_BESIDE_A_CLASS)

    def codes(there: dict[str, Any]) -> list[bytes]:
        functions: list[types.FunctionType] = [there["Net"].forward, there["scale"]]
        return [function.__code__.co_code for function in functions]

    assert codes(names) == codes(shell.user_ns)


def test_the_value_of_the_last_expression_is_kept(tmp_path: Path) -> None:
    names = program(tmp_path, "1 + 1\n20 + 2", "kept = _\n'text'", "None", "after, before = _, __\nkept;")
    assert names["kept"] == 22
    assert (names["after"], names["before"]) == ("text", 22)
    assert names["Out"] == {1: 22, 2: "text"}
    assert names["_1"] == 22


def test_a_variable_that_the_user_calls_underscore_stays(tmp_path: Path) -> None:
    names = program(tmp_path, "for _ in range(3):\n    pass", "5", "kept = _")
    assert names["kept"] == 2


def test_a_last_expression_may_await(tmp_path: Path) -> None:
    names = program(tmp_path, "import asyncio\nawait asyncio.sleep(0, 7)", "kept = _")
    assert names["kept"] == 7


def test_a_coroutine_that_is_a_value_is_not_awaited(tmp_path: Path) -> None:
    names = program(tmp_path, "async def later():\n    pass\nlater()", "kept = _\nkept.close()")
    assert names["kept"].cr_frame is None


def test_from_future_holds_for_the_statements_after_it(tmp_path: Path) -> None:
    names = program(tmp_path, "from __future__ import annotations\ndef f(x: missing): ...", "def g(x: missing): ...")
    assert names["f"].__annotations__ == names["g"].__annotations__ == {"x": "missing"}


def test_lines_of_errors_are_those_of_the_cell(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError) as caught:
        program(tmp_path, "a = 1\n\nb = (\n    a / 0\n)")
    last = caught.traceback[-1]
    assert (str(last.path), last.lineno + 1) == ("<cell [1]>", 4)
