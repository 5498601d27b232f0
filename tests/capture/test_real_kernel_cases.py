"""The tests that ``conftest.py`` gives to a real kernel in the quick lane are there."""

from __future__ import annotations

import ast
from pathlib import Path

FOLDER = Path(__file__).parent


def test_every_name_is_that_of_a_test_with_a_kernel() -> None:
    there = {
        node.name
        for path in FOLDER.glob("test_*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef) and "kernel" in {argument.arg for argument in node.args.args}
    }
    named: set[str] = set()
    for node in ast.parse((FOLDER / "conftest.py").read_text()).body:
        if isinstance(node, ast.Assign) and {ast.unparse(name) for name in node.targets} & {"REAL", "REAL_ONLY"}:
            named |= set(ast.literal_eval(node.value))
    assert named
    assert named - there == set()
