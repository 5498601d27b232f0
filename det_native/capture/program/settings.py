"""The part of a cell that runs again though the cell stays behind: imports, functions, classes, literal settings. Pure.

A setting is a name that is given what cannot change (``size = 32``), or an attribute or an item of a module
(``plt.rcParams["figure.dpi"] = 90``), or of a library's class, that is given something without a call.
"""

from __future__ import annotations

import ast
from collections.abc import Collection
from dataclasses import dataclass
from functools import lru_cache

from det_native.capture.reads import Reads, reads_of
from det_native.capture.syntax import nodes_of, tree_of

_CODE = ast.Import | ast.ImportFrom | ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
_WORK = ast.Call | ast.Await | ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp | ast.NamedExpr


@dataclass(frozen=True)
class Settings:
    """A part of a cell: its text, with each line where the cell has it, and the names that it makes what they were."""

    source: str = ""
    names: frozenset[str] = frozenset()


def settings_of(
    source: str, stale: Collection[str], modules: Collection[str], without: Collection[int] = ()
) -> Settings:
    """Return the settings of a cell that stays behind.

    Parameters
    ----------
    stale : collection of str
        Names that are not there, or not what they were: what reads one is not made again.
    modules : collection of str
        Names of modules, and of classes of libraries.
    without : collection of int
        Lines that must not run again: they hold a secret.
    """
    names = _names_in(source)
    return _settings(source, names.intersection(stale), names.intersection(modules), frozenset(without))


@lru_cache(maxsize=4096)
def _settings(source: str, stale: frozenset[str], modules: frozenset[str], without: frozenset[int]) -> Settings:
    """Return the same, given only what the cell reads: a choice asks for each cell again and again."""
    statements = _statements(source)
    missing, imported = set(stale), set(modules)
    kept: dict[ast.stmt, Reads] = {}
    for statement, code in statements:
        if isinstance(statement, ast.Import | ast.ImportFrom):
            imported |= code.bound
        lines = range(_first_line(statement), (statement.end_lineno or statement.lineno) + 1)
        held_back = any(line in lines for line in without)
        if not held_back and _is_setting(statement, imported) and missing.isdisjoint(code.reads):
            kept[statement] = code
            missing -= code.bound
        else:
            missing |= code.bound | code.stored_into
    others = [code for statement, code in statements if statement not in kept]
    again = set().union(*(code.bound | code.stored_into | code.deleted for code in others))
    again_bound = set().union(*(code.bound for code in others))
    kept = {one: code for one, code in kept.items() if not (isinstance(one, ast.Assign) and again_bound & code.bound)}
    names = set().union(*(code.bound for code in kept.values())) - again
    return Settings(_only(source, [one for one, _ in statements], kept), frozenset(names)) if kept else Settings()


@lru_cache(maxsize=4096)
def _names_in(source: str) -> frozenset[str]:
    statements = _statements(source)
    read = frozenset().union(*(code.reads for _, code in statements))
    return read.union(node.id for node in (nodes_of(source) if statements else ()) if isinstance(node, ast.Name))


@lru_cache(maxsize=1024)
def _statements(source: str) -> tuple[tuple[ast.stmt, Reads], ...]:
    """Return the statements of a cell, each with what it does with names."""
    try:
        return tuple((statement, reads_of(ast.unparse(statement))) for statement in tree_of(source).body)
    except SyntaxError:
        return ()


def _is_setting(statement: ast.stmt, modules: Collection[str]) -> bool:
    if isinstance(statement, _CODE):
        return True
    if isinstance(statement, ast.AnnAssign) and statement.value is not None:
        targets: list[ast.expr] = [statement.target]
    elif isinstance(statement, ast.Assign):
        targets = statement.targets
    else:
        return False
    assert statement.value is not None
    if all(isinstance(target, ast.Name) for target in targets):
        return _cannot_change(statement.value)
    if all(_root(target) in modules and not isinstance(target, ast.Name) for target in targets):
        return isinstance(statement.value, ast.Lambda) or not any(
            isinstance(node, _WORK) for node in ast.walk(statement.value)
        )
    return False


def _cannot_change(value: ast.expr) -> bool:
    """Whether an expression is a literal of numbers, texts and tuples."""
    if isinstance(value, ast.Constant):
        return True
    if isinstance(value, ast.Tuple):
        return all(map(_cannot_change, value.elts))
    if isinstance(value, ast.UnaryOp):
        return _cannot_change(value.operand)
    if isinstance(value, ast.BinOp):
        return isinstance(value.left, ast.Constant | ast.BinOp | ast.UnaryOp) and all(
            map(_cannot_change, (value.left, value.right))
        )
    return False


def _root(node: ast.expr) -> str:
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def _only(source: str, body: Collection[ast.stmt], kept: Collection[ast.stmt]) -> str:
    """Blank out all other statements; where they share a line with one that is kept, ``0`` stands in their place."""
    lines = [line.encode() for line in source.split("\n")]
    used = {number for one in kept for number in range(_first_line(one), (one.end_lineno or one.lineno) + 1)}
    for statement in body:
        if statement in kept:
            continue
        first, last = _first_line(statement), statement.end_lineno or statement.lineno
        for number in range(first, last + 1):
            begin = statement.col_offset if number == statement.lineno else 0
            end = statement.end_col_offset if number == last and statement.end_col_offset else len(lines[number - 1])
            if number not in used:
                lines[number - 1] = b""
                continue
            mark = b"0" if number == first or not lines[number - 1][:begin].strip() else b" "
            lines[number - 1] = lines[number - 1][:begin] + mark.ljust(end - begin) + lines[number - 1][end:]
    return b"\n".join(lines).decode()


def _first_line(statement: ast.stmt) -> int:
    decorators: list[ast.expr] = getattr(statement, "decorator_list", [])
    return min([statement.lineno, *(one.lineno for one in decorators)])
