"""How messages call a cell of a notebook."""

from __future__ import annotations


def cell_title(number: int, *, prompts: bool) -> str:
    """Return ``cell [7]`` for the number that the notebook shows, ``code cell 3`` for a place among its code cells."""
    return f"cell [{number}]" if prompts else f"code cell {number}"
