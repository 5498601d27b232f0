"""Values for the cell tagged ``parameters``, put into a cell below it: papermill's convention."""

from __future__ import annotations

import ast
import json
import math
import re
from collections.abc import Mapping
from typing import Any

from det_native.errors import ArgumentError

TAG = "parameters"
INJECTED_TAG = "injected-parameters"
_LEADING_ZERO = re.compile(r"[-+]?0\d")
_WORDS = {"true": True, "false": False, "null": None, "none": None}


def parse_parameters(texts: tuple[str, ...] | list[str]) -> dict[str, Any]:
    """Return the values of texts such as ``lr=0.1``; see :func:`typed_value` for what a value may be.

    Raises
    ------
    ArgumentError
        If a text has no name or no value, or names one twice.
    """
    values: dict[str, Any] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        name = name.strip()
        if not equals or not name.isidentifier():
            raise ArgumentError(f"invalid parameter {text!r}: write NAME=VALUE, such as lr=0.1.")
        if name in values:
            raise ArgumentError(f"parameter {name} is given twice.")
        values[name] = typed_value(value)
    return values


def typed_value(text: str) -> Any:
    """Return the value of a text that was typed for a parameter.

    Numbers (``inf`` and ``nan`` too), ``true``, ``none``, and lists, tuples and dictionaries as Python or JSON writes
    them; everything else is text.
    """
    word = text.strip()
    if word.lower() in _WORDS:
        return _WORDS[word.lower()]
    if _LEADING_ZERO.match(word):
        return text
    for read in (ast.literal_eval, float, json.loads):
        try:
            value = read(word)
            _literal("", value)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            continue
        return value
    return text


def parameters_in(source: str) -> dict[str, str]:
    """Return what a cell assigns: the text of each value by its name."""
    try:
        body = ast.parse(source).body
    except (SyntaxError, ValueError):
        return {}
    values = {}
    for statement in body:
        if isinstance(statement, ast.Assign | ast.AnnAssign) and statement.value is not None:
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            text = ast.unparse(statement.value)
            values.update({target.id: text for target in targets if isinstance(target, ast.Name)})
    return values


def put_parameters(notebook: Any, values: Mapping[str, Any]) -> None:
    """Put a cell with the values below the tagged cell; one of an earlier run is replaced.

    Raises
    ------
    ArgumentError
        If no cell is tagged, or none of its names is meant.
    """
    if not values:
        return
    import nbformat

    cells = [cell for cell in notebook.cells if INJECTED_TAG not in cell.metadata.get("tags", [])]
    tagged = [cell for cell in cells if cell.cell_type == "code" and TAG in cell.metadata.get("tags", [])]
    if not tagged:
        raise ArgumentError(
            f"The notebook has no cell tagged {TAG!r}: tag the cell that assigns {', '.join(values)} "
            "(JupyterLab: Property Inspector, Cell Tags)."
        )
    names = parameters_in(tagged[0].source)
    unknown = [name for name in values if name not in names]
    if unknown and names:
        raise ArgumentError(
            f"The cell tagged {TAG!r} assigns {', '.join(names)}, and not {', '.join(unknown)}: check the spelling."
        )
    text = "# Parameters\n" + "\n".join(f"{name} = {_literal(name, value)}" for name, value in values.items())
    cell = nbformat.v4.new_code_cell(text, metadata={"tags": [INJECTED_TAG]}, id="det-parameters")
    cells.insert(cells.index(tagged[0]) + 1, cell)
    notebook.cells = cells


def _literal(name: str, value: Any) -> str:
    """Return the source of a value.

    Raises
    ------
    ArgumentError
        If it has none.
    """
    if isinstance(value, float) and not math.isfinite(value):
        return f'float("{value}")'
    if value is None or isinstance(value, bool | int | float | str):
        return repr(value)
    if isinstance(value, list | tuple):
        parts = ", ".join(_literal(name, part) for part in value)
        return f"[{parts}]" if isinstance(value, list) else f"({parts}{',' * (len(value) == 1)})"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{_literal(name, key)}: {_literal(name, part)}' for key, part in value.items())}}}"
    raise ArgumentError(f"parameter {name} cannot be {value!r}: use a number, text, true, null or a list of these.")
