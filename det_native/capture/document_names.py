"""Does every name that the cells of a document use come from a cell above? By their text alone."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from det_native.capture.modules import module_file
from det_native.capture.names import PROVIDED, cell_names
from det_native.capture.scopes import bound_names
from det_native.errors import Problem

if TYPE_CHECKING:
    from det_native.capture.document import Document


def name_problems(document: Document, sent: Sequence[int], values: Sequence[str]) -> Iterator[Problem]:
    """Yield a problem for each name that a cell uses at once, or a function that a cell names, and no cell binds.

    Parameters
    ----------
    document : Document
    sent : sequence of int
        The cells that are sent.
    values : sequence of str
        Names that are sent by value.
    """
    bound = set(PROVIDED) | set(values)
    trees = {at: _as_far_as_the_call(document, at) for at in sent}
    named = {node.id for tree in trees.values() for node in ast.walk(tree) if isinstance(node, ast.Name)}
    late: list[tuple[int, str, str]] = []
    for at, tree in trees.items():
        names = cell_names(ast.unparse(tree))
        for module in names.stars:
            star = star_names(module)
            if star is None:
                return  # only running it tells what it binds
            bound |= star
        bound |= names.bound
        for name in sorted(names.used - bound):
            yield _problem(document, at, tree, name, "")
        late.extend((at, name, function) for name, function in names.late.items())
    for at, name, function in late:
        if name not in bound and (function in named or not function.isidentifier()):
            yield _problem(document, at, trees[at], name, f" by {function}")


def _as_far_as_the_call(document: Document, at: int) -> ast.Module:
    tree = document.trees[at]
    assert tree is not None
    if at != document.call.running:
        return tree
    return ast.Module([one for one in tree.body if one.lineno <= document.call.running_line], [])


def _problem(document: Document, at: int, tree: ast.Module, name: str, by: str) -> Problem:
    lines = [node.lineno for node in ast.walk(tree) if isinstance(node, ast.Name) and node.id == name]
    where = f"{document.label(at)}, line {min(lines, default=1)}"
    used, cells = f"`{name}` is used{by}", document.cells
    later = [i for i, one in enumerate(document.trees) if i > at and one and name in bound_names(one.body)]
    skipped = [i for i, cell in enumerate(cells[:at]) if cell.skipped and name in cell.source]
    invalid = [i for i in document.invalid if i <= at and name in cells[i].source]
    if skipped:
        what = f"{used}, but {document.within(skipped[-1])}, which defines it, is tagged det-skip."
        return Problem(where, what, "Untag it.")
    if later:
        what = f"{used}, but only {document.within(later[0])}, further down, defines it."
        return Problem(where, what, "Move that cell up: cells are sent in the order of the document.")
    if invalid:
        what = f"{used}, but {document.within(invalid[-1])} is not valid Python ({document.invalid[invalid[-1]]})."
        return Problem(where, what, "Fix that cell.")
    for i, cell in enumerate(cells[: at + 1]):
        if name in cell.python.shell:
            line = cell.python.shell[name]
            what = f"{used}, which {document.within(i)} sets by `{line}`: shell lines and magics do not run there."
            return Problem(where, what, "Write that in Python.")
    hidden = [(i, one) for i, cell in enumerate(cells[: at + 1]) for one in (*cell.python.hidden, cell.python.language)]
    found = [f"; {document.within(i)} runs `{one}`" for i, one in hidden if one]
    return Problem(
        where, f"{used}, but no cell above defines it{found[-1] if found else ''}.", "Define it in a cell above."
    )


def star_names(module: str) -> frozenset[str] | None:
    """Return the names that ``from module import *`` binds, read from its source; None if that does not tell."""
    if module == "det_native":
        import det_native

        return frozenset(det_native.__all__)
    file = _source_of(module)
    if file is None:
        return None
    try:
        tree = ast.parse(file.read_text(encoding="utf-8"))
    except (OSError, SyntaxError, ValueError):
        return None
    if any(isinstance(node, ast.ImportFrom) and node.names[0].name == "*" for node in ast.walk(tree)):
        return None
    names = bound_names(tree.body)
    if "__all__" in names or "__getattr__" in names:
        return _exported(tree)
    return frozenset(name for name in names if not name.startswith("_"))


def _source_of(module: str) -> Path | None:
    """The source of a module, found without importing the packages that it is in."""
    top, _, rest = module.partition(".")
    file = module_file(top)
    if file is None or not rest:
        return file
    base = file.parent.joinpath(*rest.split("."))
    return next((path for path in (base.with_suffix(".py"), base / "__init__.py") if path.is_file()), None)


def _exported(tree: ast.Module) -> frozenset[str] | None:
    """The names in ``__all__``, if it is one list of literals."""
    values = [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign)
        and any(isinstance(name, ast.Name) and name.id == "__all__" for name in ast.walk(node))
    ]
    if len(values) != 1 or values[0] is None:
        return None
    try:
        return frozenset(ast.literal_eval(values[0]))
    except (ValueError, TypeError):
        return None
