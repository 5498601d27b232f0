"""The master never opens what users send, and never imports what they train with."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import det_native.master

ROOT = Path(det_native.master.__file__).parent
SOURCES = sorted(ROOT.rglob("*.py"))
FORBIDDEN_MODULES = {
    "pickle", "cloudpickle", "dill", "shelve", "marshal", "joblib", "torch", "tensorflow", "keras", "numpy",
    "det_harness", "runpy", "importlib", "yaml",
}  # fmt: skip
#: Of these, what only tells of installed packages and runs nothing of them.
HARMLESS = {("importlib", "metadata"), ("importlib.util", "find_spec")}
FORBIDDEN_CALLS = {"eval", "exec", "compile", "__import__", "import_module"}


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_code_or_pickle_of_users_is_opened(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names = {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            refused = any((node.module, alias.name) not in HARMLESS for alias in node.names)
            names = {(node.module or "").partition(".")[0]} if refused else set()
        else:
            names = set()
        assert not names & FORBIDDEN_MODULES, f"line {getattr(node, 'lineno', 0)} imports {names}"
        if isinstance(node, ast.Call):
            called = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
            bare = isinstance(node.func, ast.Name) or called in {"import_module", "__import__"}
            assert not (bare and called in FORBIDDEN_CALLS), f"line {node.lineno} calls {called}"
            if not node.args and not node.keywords:
                continue  # it is given nothing to open
            assert called not in {"loads", "load"} or "json" in ast.unparse(node.func), ast.unparse(node)


def test_there_is_something_to_look_at() -> None:
    assert len(SOURCES) > 30
