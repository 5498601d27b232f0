"""Whether a cell does again all that an earlier one did before it failed, so that the earlier one is not needed. Pure.

A cell is mended and run again: `cfg["size"] = 64` is done a second time, and nothing is another by it. What was changed
is seen; of what is the same, the text has to tell whether it was set again.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterator, Sequence, Set
from dataclasses import dataclass, field
from functools import lru_cache

from det_native.capture.reads import reads_of

#: One step from a value to a part of it: ``item`` or ``attribute``, and which, as text.
Step = tuple[str, str]
Path = tuple[Step, ...]
_CHAIN = ast.Attribute | ast.Subscript


@dataclass
class Touches:
    """What a statement does with parts of a name's value: reads them, sets them, may change them by a call."""

    reads: list[Path] = field(default_factory=list)
    sets: list[Path] = field(default_factory=list)
    calls: list[Path] = field(default_factory=list)


@dataclass(frozen=True)
class Done:
    """What a failed cell has done: `whole` statements, and perhaps a part of the `last` one."""

    whole: tuple[ast.stmt, ...]
    last: ast.stmt | None = None

    @property
    def all(self) -> tuple[ast.stmt, ...]:
        """All statements that did something."""
        return self.whole if self.last is None else (*self.whole, self.last)


def done_before_failure(source: str, failed_line: int | None, missing: str) -> Done | None:
    """Return what a failed cell has done; None if nobody can tell.

    `missing` is the name or attribute that was not there, if that was the error: a statement in which no call comes
    before it did nothing.
    """
    whole: list[ast.stmt] = []
    for statement in _statements(source):
        if failed_line is not None and (statement.end_lineno or statement.lineno) >= failed_line:
            nothing = statement.lineno > failed_line or did_nothing(statement, missing)
            return Done(tuple(whole), None if nothing else statement)
        whole.append(statement)
    return None


def sets_again(
    done: Sequence[ast.stmt], again: str, names: Set[str], looked_up: Callable[[str], Collection[str]]
) -> bool:
    """Whether a cell sets all parts of these names that statements have set, before it reads any of them.

    Parameters
    ----------
    done : sequence of ast.stmt
    again : str
        Text of the cell.
    names : collection of str
        Whose values the statements have changed: some directly, others because they hold the same object.
    looked_up : callable
        Which names the functions in a name's value look up.
    """
    left: dict[str, set[Path]] = {}
    for statement in done:
        loaded = _loaded(statement)
        if any(not names.isdisjoint(looked_up(name)) for name in loaded):
            return False
        for name in loaded & set(names):
            touched = touches(statement, name)
            left.setdefault(name, set()).update(touched.sets, touched.calls)
    left = {name: paths for name, paths in left.items() if paths}
    if not left or any(() in paths for paths in left.values()):
        return False
    others = set(names) - left.keys()  # they hold the same objects, and nobody knows in which of their parts
    for statement in _statements(again):
        loaded = _loaded(statement)
        if loaded & others:
            return False
        for name, paths in left.items():
            touched = touches(statement, name)
            if any(name in looked_up(one) for one in loaded):
                return False
            if any(_meet(one, path) for one in (*touched.reads, *touched.calls) for path in paths):
                return False
            paths -= {path for path in paths for one in touched.sets if path[: len(one)] == one}
        left = {name: paths for name, paths in left.items() if paths}
        if not left:
            return True
    return False


def does_again(done: Done, again: str, names: Set[str], looked_up: Callable[[str], Collection[str]]) -> bool:
    """Whether a cell has all these statements in their order, and besides none that changes these names.

    What else it makes must not depend on what they were when it began.
    """

    def uses(statement: ast.stmt) -> bool:
        return any(name in names or not names.isdisjoint(looked_up(name)) for name in _loaded(statement))

    if done.last is not None and uses(done.last):
        return False
    waiting = [ast.dump(statement) for statement in done.whole]
    for statement in _statements(again):
        code = reads_of(ast.unparse(statement))
        if waiting and ast.dump(statement) == waiting[0]:
            waiting.pop(0)
            if code.bound and uses(statement):
                return False
        elif (waiting and uses(statement)) or not names.isdisjoint(code.stored_into | code.for_effect | code.deleted):
            return False
    return not waiting


def only_sets(source: str, name: str) -> bool:
    """Whether all that a cell does to a name's value is to set parts of it, so that once is as good as twice."""
    return sets_again(_statements(source), source, {name}, lambda _: ())


def shared_statement(one: str, other: str, name: str) -> bool:
    """Whether two cells have a statement in common that uses a name."""
    mine = {ast.dump(statement) for statement in _statements(one) if name in _loaded(statement)}
    return any(ast.dump(statement) in mine for statement in _statements(other))


@lru_cache(maxsize=512)
def _parsed(source: str) -> tuple[ast.stmt, ...]:
    try:
        return tuple(ast.parse(source).body)
    except SyntaxError:
        return ()


def _statements(source: str) -> list[ast.stmt]:
    return list(_parsed(source))


def _loaded(statement: ast.stmt) -> set[str]:
    return {node.id for node in ast.walk(statement) if isinstance(node, ast.Name)}


def did_nothing(statement: ast.stmt, missing: str) -> bool:
    """Whether a failed statement had called nothing when it met what was not there."""
    if not missing or not isinstance(statement, ast.Expr | ast.Assign | ast.AnnAssign):
        return False
    places = [
        node
        for node in ast.walk(statement)
        if (isinstance(node, ast.Name) and node.id == missing)
        or (isinstance(node, ast.Attribute) and node.attr == missing)
    ]
    calls = [node for node in ast.walk(statement) if isinstance(node, ast.Call | ast.Await | ast.NamedExpr)]
    return bool(places) and all(any(inner is places[0] for inner in ast.walk(call)) for call in calls)


def touches(statement: ast.stmt, name: str) -> Touches:
    """Return what a statement does with the value of a name."""
    found = Touches()
    if isinstance(statement, ast.Assign | ast.AnnAssign | ast.AugAssign):
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        for target in _each(targets):
            path, exact, rest = _path(target, name)
            for inner in rest:
                _loads(inner, name, found)
            if path is None:
                continue
            if isinstance(statement, ast.AugAssign):
                found.reads.append(path)
            (found.sets if exact and path else found.calls).append(path)
        if statement.value is not None:
            _loads(statement.value, name, found)
    elif isinstance(statement, ast.Expr) and not isinstance(statement.value, ast.Name):
        _loads(statement.value, name, found)
        if isinstance(statement.value, ast.Call | ast.Await):
            found.calls += found.reads
    elif not isinstance(statement, ast.Expr | ast.Import | ast.ImportFrom) and name in _loaded(statement):
        found.reads.append(())
        found.calls.append(())
    return found


def _each(targets: Sequence[ast.expr]) -> Iterator[ast.expr]:
    for target in targets:
        if isinstance(target, ast.Tuple | ast.List):
            yield from _each(target.elts)
        else:
            yield target.value if isinstance(target, ast.Starred) else target


def _loads(node: ast.AST, name: str, found: Touches, called: bool = False) -> None:
    """Note which parts of a name's value an expression reads; where all of it is given away, it may be changed."""
    if isinstance(node, ast.Name | _CHAIN):
        path, _, rest = _path(node, name)
        if path is not None:
            inner = path[:-1] if called and isinstance(node, ast.Attribute) else path
            found.reads.append(inner)
            if not inner:
                found.calls.append(inner)
        for one in rest:
            _loads(one, name, found)
        return
    if isinstance(node, ast.Call):
        _loads(node.func, name, found, called=True)
        for one in (*node.args, *node.keywords):
            _loads(one, name, found)
        return
    for one in ast.iter_child_nodes(node):
        _loads(one, name, found)


def _path(node: ast.expr, name: str) -> tuple[Path | None, bool, list[ast.AST]]:
    """Return the way from the name to a part of its value, whether that is known whole, and what else is read."""
    steps: list[Step | None] = []
    rest: list[ast.AST] = []
    while isinstance(node, _CHAIN):
        if isinstance(node, ast.Attribute):
            steps.append(("attribute", node.attr))
        else:
            plain = all(
                isinstance(one, ast.Constant | ast.Tuple | ast.Slice | ast.Load) for one in ast.walk(node.slice)
            )
            steps.append(("item", ast.dump(node.slice)) if plain else None)
            rest.append(node.slice)
        node = node.value
    if not isinstance(node, ast.Name):
        return None, False, [*rest, node]
    if node.id != name:
        return None, False, rest
    steps.reverse()
    exact = None not in steps
    known = steps[: steps.index(None)] if not exact else steps
    return tuple(step for step in known if step is not None), exact, rest


def _meet(one: Path, other: Path) -> bool:
    """Whether two parts may have something in common."""
    if one and other and one[0] != other[0] and "attribute" in (one[0][0], other[0][0]):
        return one[0][0] != other[0][0] or len(one) + len(other) > 2  # df.a, df["a"], df.loc[0, "a"]
    return all(_may_be_same(mine, theirs) for mine, theirs in zip(one, other, strict=False))


def _may_be_same(one: Step, other: Step) -> bool:
    if one == other or one[0] != other[0]:
        return True
    if one[0] == "attribute":
        return False
    kinds = {_kind(step[1]) for step in (one, other)}
    return len(kinds) > 1 or None in kinds


def _kind(dumped: str) -> type | None:
    """Return the kind of a key of which two different ones are never the same place: a text, or a position."""
    if dumped.startswith(("Constant(value='", 'Constant(value="')):
        return str
    number = dumped.removeprefix("Constant(value=").removesuffix(")")
    return int if number.isdigit() else None
