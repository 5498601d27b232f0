"""Environment variables that a document's cells set."""

from __future__ import annotations

import ast
from collections.abc import Mapping


def set_variable(name: str, trees: Mapping[int, ast.Module]) -> tuple[str | None, int | None]:
    """Return to what cells set a variable of the environment, and the cell where running them has to tell.

    It is literal where it is mentioned once, as ``os.environ["NAME"] = "text"`` at the top level of a cell.

    Parameters
    ----------
    name : str
    trees : mapping of int to ast.Module
        The cells as Python, as far as the call.
    """
    mentioned = [cell for cell, tree in trees.items() for node in ast.walk(tree) if _mentions(node, name)]
    if not mentioned:
        return None, None
    literal = [value for tree in trees.values() for node in tree.body if (value := _literal(node, name)) is not None]
    return (literal[0], None) if len(literal) == len(mentioned) == 1 else (None, mentioned[-1])


def _mentions(node: ast.AST, name: str) -> bool:
    return (isinstance(node, ast.Constant) and node.value == name) or (
        isinstance(node, ast.keyword) and node.arg == name
    )


def _literal(node: ast.stmt, name: str) -> str | None:
    if not isinstance(node, ast.Assign) or len(node.targets) != 1 or not isinstance(node.value, ast.Constant):
        return None
    target, value = node.targets[0], node.value.value
    is_item = isinstance(target, ast.Subscript) and _mentions(target.slice, name)
    of_environment = is_item and ast.unparse(target).partition("[")[0].rpartition(".")[2] == "environ"
    return value if of_environment and isinstance(value, str) else None
