"""Which global names a function looks up when it is called; read from its code. Pure."""

from __future__ import annotations

import ast
import symtable


def late_names(node: ast.AST) -> frozenset[str]:
    """Return the global names that a function looks up when it is called."""
    source = ast.unparse(node)
    try:
        table = symtable.symtable(source, "<cell>", "exec")
    except SyntaxError:  # its ``nonlocal`` names are those of a function around it
        return frozenset(one.id for one in ast.walk(node) if isinstance(one, ast.Name))
    found: set[str] = set()
    for child in table.get_children():
        _globals_in(child, found)
    return frozenset(found - {"__class__"})  # of ``super()``


def _globals_in(table: object, found: set[str]) -> None:
    for symbol in table.get_symbols():  # type: ignore[attr-defined]
        if symbol.is_global() and (symbol.is_referenced() or symbol.is_assigned()):
            found.add(symbol.get_name())
    for child in table.get_children():  # type: ignore[attr-defined]
        _globals_in(child, found)
