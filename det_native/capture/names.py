"""Does every name that a program uses come from somewhere? Pure: on source text and lists of names."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from det_native.capture.failure import before
from det_native.capture.program.choose import ALWAYS_THERE
from det_native.capture.reads import reads_of
from det_native.capture.reads_record import Reads
from det_native.capture.stars import star_names
from det_native.errors import Problem
from det_native.schema.manifests import Program


def check_bundle_names(program: Program, values: Collection[str]) -> list[Problem]:
    """Return a problem for each name that a cell uses and nothing binds: no earlier cell, value or builtin.

    Names used inside functions may be bound by any cell, as they are looked up when the function runs; a function that
    no cell uses need not find its names. Of the last cell only what runs before or around the call is looked at: the
    top-level statements as far as the one that makes it. What may fail need not find its names either.

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
    functions: dict[str, frozenset[str]] = {}
    for place, cell in enumerate(program.cells):
        last = program.call.running_line if program.call is not None and place == len(program.cells) - 1 else None
        code, where = reads_of(cell.source, last=last), program.title(place)
        stars = [star_names(module, load=True) for module, _ in code.stars]
        if code.runs_text or None in stars:  # it may bind anything
            return problems
        bound |= code.bound.union(code.late_bound, *(star or () for star in stars))
        # A name that a later cell gives to something else is that function no more.
        functions = {name: names for name, names in functions.items() if name not in code.bound} | code.functions
        if cell.optional_from is not None:
            code = reads_of(before(cell.source, cell.optional_from))
        problems.extend(_problem(where, name, "") for name in sorted(code.wanted - bound))
        late.extend((where, name, function) for name, function in _looked_up(code, functions, set(values)))
    problems.extend(
        _problem(where, name, f", in {function}")
        for where, name, function in late
        if name not in bound and "*" not in name
    )
    return problems


def _looked_up(code: Reads, functions: dict[str, frozenset[str]], seen: set[str]) -> Iterator[tuple[str, str]]:
    """Yield (name, function) for the names that functions look up which a cell uses, and those that these use."""
    waiting = [*code.loaded]
    while waiting:
        function = waiting.pop()
        if function not in seen:
            seen.add(function)
            names = sorted(functions.get(function, ()))
            yield from ((name, function) for name in names)
            waiting.extend(names)


def _problem(where: str, name: str, inside: str) -> Problem:
    return Problem(
        where,
        f"`{name}` is used{inside}, but no cell that is sent defines it.",
        f"Run the cell that defines it, then submit again, or send it: values=['{name}'].",
    )
