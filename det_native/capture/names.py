"""Does every name that a program uses come from somewhere? Pure: on source text and lists of names."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Sequence

from det_native.capture.program.choose import ALWAYS_THERE
from det_native.capture.reads import reads_of
from det_native.capture.stars import star_names
from det_native.errors import Problem
from det_native.schema.manifests import Program


def check_bundle_names(program: Program, values: Collection[str]) -> list[Problem]:
    """Return a problem for each name that a cell uses and nothing binds: no earlier cell, value or builtin.

    Names used inside functions may be bound by any cell, as they are looked up when the function runs. Of a program
    whose call is known, only what runs before or around the call is looked at, by the analysis that chose its cells:
    the top-level statements of the last cell as far as the one that makes the call, and the functions that they reach.

    Parameters
    ----------
    program : Program
        Of kind ``cells``; a script has nothing to check.
    values : collection of str
        Names that are sent by value.
    """
    bound = set(ALWAYS_THERE) | set(values)
    problems: list[Problem] = []
    late: list[tuple[str, str, str]] = []
    sources = _sources_before_call(program)
    for where, source, cell in zip(_titles(program), sources, program.cells, strict=True):
        code = reads_of(source)
        stars = [star_names(module, load=True) for module, _ in code.stars]
        if code.runs_text or None in stars:  # it may bind anything
            return problems
        bound |= code.bound.union(code.late_bound, *(star or () for star in stars))
        if cell.optional_from is not None:
            code = reads_of(_before(source, cell.optional_from))
        problems.extend(_problem(where, name, "") for name in sorted(code.wanted - bound))
        late.extend((where, name, function) for function, names in code.functions.items() for name in sorted(names))
    if _line_of_call(program) is not None:
        late = list(_reached(program, sources, values))
    problems.extend(
        _problem(where, name, f", in {function}")
        for where, name, function in late
        if name not in bound and "*" not in name
    )
    return problems


def _titles(program: Program) -> list[str]:
    return [program.title(index) for index in range(len(program.cells))]


def _line_of_call(program: Program) -> int | None:
    """Line of the last cell's top level at which the call is made, None if that is not known."""
    return program.call.running_line if program.call is not None else None


def _sources_before_call(program: Program) -> list[str]:
    """The cells, the last one without the statements that begin after the call."""
    sources = [cell.source for cell in program.cells]
    line = _line_of_call(program)
    if line is not None and sources:
        tree = ast.parse(sources[-1])
        kept = [statement for statement in tree.body if statement.lineno <= line]
        if len(kept) < len(tree.body):
            sources[-1] = ast.unparse(ast.Module(kept, []))
    return sources


def _before(source: str, line: int) -> str:
    """Return the statements that end before a line."""
    kept = [one for one in ast.parse(source).body if (one.end_lineno or one.lineno) < line]
    return ast.unparse(ast.Module(kept, []))


def _reached(program: Program, sources: Sequence[str], values: Collection[str]) -> Iterator[tuple[str, str, str]]:
    """Yield (cell, name, function) for names that functions look up which the cells use, and that are not there then.

    A function that no cell uses need not find its names: the slicer does not send them.
    """
    functions: dict[str, frozenset[str]] = {}
    for where, source, cell in zip(_titles(program), sources, program.cells, strict=True):
        functions |= reads_of(source).functions
        code = reads_of(source if cell.optional_from is None else _before(source, cell.optional_from))
        waiting, seen = [*code.loaded], set(values)
        while waiting:
            function = waiting.pop()
            if function not in seen:
                seen.add(function)
                found = sorted(functions.get(function, ()))
                yield from ((where, name, function) for name in found)
                waiting.extend(found)


def _problem(where: str, name: str, inside: str) -> Problem:
    return Problem(
        where,
        f"`{name}` is used{inside}, but no cell that is sent defines it.",
        f"Run the cell that defines it, then submit again, or send it: values=['{name}'].",
    )
