"""Which files a training is known to write: what its code says, before any of it has been written."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from det_native.capture.path_texts import Role
from det_native.capture.syntax import tree_of
from det_native.capture.transform import transform
from det_native.capture.value_paths import may_be_path
from det_native.files_home.uses import Lookup, PathReader, PathUse
from det_native.files_home.values import functions_in, is_plain_object, texts_in

_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def expected_uses(
    cells: Iterable[str],
    running: Iterable[tuple[Sequence[ast.stmt], Lookup, Mapping[str, Any]]],
    given: Iterable[Any],
    *,
    namespace: Mapping[str, Any],
    folder: str,
    folders: Iterable[str] = (),
    seen_of_cells: Callable[[str], bool] = lambda path: False,
) -> tuple[PathUse, ...]:
    """Return the paths to which a training may write.

    Parameters
    ----------
    cells : iterable of str
        Texts of the cells that are sent: what they define may run while it trains. Their own lines have run here.
    running : iterable of (statements, lookup, variables)
        The statement of the cell in which the call is, and the functions around the call: these run on.
    given : iterable of object
        What the call is given that the training calls back.
    namespace : mapping of str
        The notebook's.
    folder : str
        The working directory.
    folders : iterable of str
        Folders that are the training's own.
    seen_of_cells : callable
        Whether cells that the call needs were seen to read or write a file here, before the call: what functions do
        with it has been done then.
    """
    several = list(given)
    classes = classes_of(several)
    certain, likely = PathReader(folder, classes), PathReader(folder, classes)
    made, now, called = (PathReader(folder, classes) for _ in range(3))
    for source in cells:
        try:
            body = tree_of(transform(source).source).body
        except SyntaxError:
            continue
        likely.read([node for node in body if isinstance(node, _DEFINITIONS)], namespace.get)
        made.read([node for node in body if not isinstance(node, _DEFINITIONS)], namespace.get)
    for statements, lookup, variables in running:
        now.read(statements, lookup)
        for value in variables.values():
            if is_plain_object(value):
                likely.read_value(value)
    for text in folders:
        certain.read_text(text)
    for value in several:
        for text in texts_in(value, (), attributes=True):
            certain.read_text(text)
        called.read_class(type(value))
        for function in functions_in(value):
            called.read_function(function)
    found = [
        *certain.uses,
        *(use for use in made.uses if use.given),
        # What runs in the training writes, whatever has been written here before.
        *(use for use in (*now.uses, *called.uses) if use.role is Role.WRITTEN),
        *(use for use in (*now.uses, *called.uses, *likely.uses) if _may_be_written(use, seen_of_cells)),
    ]
    return tuple(dict.fromkeys(found))


def classes_of(given: Iterable[Any]) -> frozenset[type]:
    """Return the classes of what a training is given, with their bases."""
    return frozenset(base for value in given for base in type(value).__mro__[:-1])


def _may_be_written(use: PathUse, seen_of_cells: Callable[[str], bool]) -> bool:
    if use.given:
        return True
    if use.role is Role.READ or ("*" not in use.pattern and seen_of_cells(use.pattern)):
        return False
    return use.role is Role.WRITTEN or may_be_path(use.text)
