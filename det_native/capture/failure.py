"""What a failed cell did: the statements before the one that failed, and perhaps a part of that one. Pure.

The statements before it did their work, and can run again. Of the statement that failed nobody knows how far it came;
what it may have changed is told apart from what the others did by their texts.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from det_native.capture.observation.watch import Effects
from det_native.capture.reads import reads_of
from det_native.capture.reads_record import Reads
from det_native.capture.redone import did_nothing

_SIMPLE = ast.Expr | ast.Assign | ast.AnnAssign | ast.AugAssign | ast.Import | ast.ImportFrom | ast.Assert | ast.Raise


@dataclass(frozen=True)
class Divided:
    """The text of a failed cell.

    Attributes
    ----------
    head : str
        What stands before the statement that failed.
    last : str
        That statement, with those on the same line; empty if it did nothing.
    until_call : str
        What stands before the first statement that trains, if that is not the one that failed; else empty.
    """

    head: str
    last: str
    until_call: str = ""


def divide(source: str, line: int, *, missing: str = "", refused: bool = False, taken: Collection[int] = ()) -> Divided:
    """Divide the text of a cell that failed at a line.

    Parameters
    ----------
    source : str
    line : int
    missing : str
        The name or attribute that was not there, if that was the error.
    refused : bool
        det_native refused a call, which did nothing then.
    taken : collection of int
        Lines of training calls.
    """
    body = ast.parse(source).body
    failed = next((one for one in body if (one.end_lineno or one.lineno) >= line), None)
    if failed is None:
        return Divided("", source)
    begin, end = _first_line(failed), failed.end_lineno or failed.lineno
    group = [one for one in body if _first_line(one) <= end and (one.end_lineno or one.lineno) >= begin]
    begin, end = min(map(_first_line, group)), max(one.end_lineno or one.lineno for one in group)
    lines = source.splitlines(keepends=True)
    head = "".join(lines[: begin - 1])
    alone = len(group) == 1 and isinstance(failed, ast.Expr | ast.Assign | ast.AnnAssign)
    nothing = begin > line or (alone and (refused or did_nothing(failed, missing)))
    calls = [_first_line(one) for one in body if any(_holds(one, at) for at in taken)]
    until = "".join(lines[: calls[0] - 1]) if calls and calls[0] < begin else ""
    return Divided(
        head if _has_code(head) else "",
        "" if nothing else "".join(lines[begin - 1 : end]),
        until if _has_code(until) else "",
    )


def doubtful_names(
    effects: Effects | None,
    head: Reads,
    last: Reads,
    last_text: str,
    looked_up: Mapping[str, Collection[str]],
    plain: Collection[str],
    written: Collection[str],
) -> dict[str, bool]:
    """Return the names that the statement which failed may have changed; True where nothing else can have.

    Parameters
    ----------
    effects : Effects or None
        What was seen of the whole execution.
    head, last : Reads
        What the statements before it, and it, do with names.
    last_text : str
        Its text.
    looked_up : mapping of str to names
        Which names functions in the values look up.
    plain : collection of str
        Names of modules, functions, classes, and of values that cannot change.
    written : collection of str
        Names that functions declare as ``global``.
    """
    early = binds_early(last_text)
    own = last.bound if early else set()
    reach = _closure(last.loaded | last.stored_into, looked_up)
    if effects is None:
        found = {name: name not in head.bound for name in own}
        return found | {
            name: False for name in reach - set(plain) - found.keys() if name in last.called | last.stored_into
        }
    found = {}
    for name in effects.bound:
        if name in own:
            found[name] = name not in head.bound
        elif name not in head.bound:  # a function or a text that was run bound it
            if last.called:
                found[name] = not head.called
        elif name in written and last.called:
            found[name] = False
    made = {name for name in head.bound if name not in plain}
    changed = effects.changed
    if not reach.isdisjoint(changed | made):
        before = _closure(head.loaded | head.stored_into, looked_up)
        elsewhere = not before.isdisjoint(changed | effects.bound | effects.removed)
        found |= dict.fromkeys(changed, not elsewhere)
    if not reach.isdisjoint(changed | effects.unclear | made):
        found |= dict.fromkeys(effects.unclear - found.keys(), False)
    touched = reach if early else _closure(last.called | last.stored_into, looked_up)
    return found | dict.fromkeys(made & touched - found.keys(), False)


def reached_by(code: Reads, looked_up: Mapping[str, Collection[str]]) -> set[str]:
    """Return all names that code may change: those that it has, and those that functions among them look up."""
    return _closure(code.loaded | code.stored_into, looked_up)


def since_call(head: str, until_call: str) -> tuple[Reads, Reads]:
    """Return what the statement with the first training call, and those behind it, do with names."""
    begin = until_call.count("\n") + 1
    call = next(one for one in ast.parse(head).body if _first_line(one) >= begin)
    return reads_of(head, call.lineno, call.lineno), reads_of(head, (call.end_lineno or call.lineno) + 1)


@lru_cache(maxsize=4096)
def global_names(source: str) -> frozenset[str]:
    """Return the names that functions of a cell declare as ``global``."""
    if "global " not in source:
        return frozenset()
    return frozenset(
        name for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Global) for name in node.names
    )


def binds_early(text: str) -> bool:
    """Whether code may have bound names before it failed: most statements bind theirs as the last thing they do."""
    body = ast.parse(text).body
    if len(body) != 1 or not isinstance(body[0], _SIMPLE):
        return bool(body)
    return any(
        isinstance(node, ast.NamedExpr)
        or (isinstance(node, ast.Import | ast.ImportFrom) and len(node.names) > 1)
        or (isinstance(node, ast.Assign) and (len(node.targets) > 1 or not isinstance(node.targets[0], ast.Name)))
        for node in ast.walk(body[0])
    )


def effects_again(done: Iterable[ast.stmt], again: str) -> bool:
    """Whether a cell has, in their order, all those of these statements that do not only bind names."""
    waiting = [ast.dump(one) for one in done if not _only_binds(one)]
    for statement in ast.parse(again).body:
        if waiting and ast.dump(statement) == waiting[0]:
            waiting.pop(0)
    return not waiting


def _only_binds(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.Assign):
        return all(isinstance(target, ast.Name) for target in statement.targets)
    definitions = ast.Import | ast.ImportFrom | ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef | ast.AnnAssign
    return isinstance(statement, definitions)


def _first_line(statement: ast.stmt) -> int:
    decorators: list[ast.expr] = getattr(statement, "decorator_list", [])
    return min([statement.lineno, *(one.lineno for one in decorators)])


def _holds(statement: ast.stmt, line: int) -> bool:
    return _first_line(statement) <= line <= (statement.end_lineno or statement.lineno)


def _has_code(text: str) -> bool:
    return any(not isinstance(one, ast.Pass) for one in ast.parse(text).body)


def _closure(names: Iterable[str], looked_up: Mapping[str, Collection[str]]) -> set[str]:
    found: set[str] = set()
    waiting = [*names]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting.extend(looked_up.get(name, ()))
    return found
