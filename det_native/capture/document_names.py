"""Does every name that the cells of a document use come from a cell above? By their text alone."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from det_native.capture.document import Document
from det_native.capture.document_stars import star_names
from det_native.capture.names import PROVIDED, cell_names
from det_native.capture.scopes import bound_names
from det_native.errors import Problem


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
