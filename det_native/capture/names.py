"""Does every name that a program uses come from somewhere? Pure: on source text and lists of names."""

from __future__ import annotations

import ast
import builtins
import importlib
import symtable
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from det_native.capture.reads import reads_of
from det_native.errors import Problem
from det_native.schema.manifests import Program

#: Names that every module has, or that the harness provides.
PROVIDED = frozenset(dir(builtins)) | {
    *("__name__", "__doc__", "__file__", "__builtins__", "__spec__", "__loader__", "__package__", "__annotations__"),
    *("display", "get_ipython"),
}


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
    bound = set(PROVIDED) | set(values)
    problems: list[Problem] = []
    late: list[tuple[str, str, str]] = []
    sources = _sources_before_call(program)
    for where, source, cell in zip(_titles(program), sources, program.cells, strict=True):
        names = cell_names(source)
        if cell.optional_from is not None:
            wanted = cell_names(_before(source, cell.optional_from))
            names = replace(names, used=wanted.used, late=wanted.late)
        for module in names.stars:
            star = _imported_names(module)
            if star is None:
                return problems
            bound |= set(star)
        bound |= names.bound
        if reads_of(source).runs_text:  # it may bind anything
            return problems
        problems.extend(_problem(where, name, "") for name in sorted(names.used - bound))
        late.extend((where, name, function) for name, function in sorted(names.late.items()))
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

    A function that no cell uses need not find its names.
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


@dataclass
class Names:
    """What a cell binds, uses at once, uses in functions (with one that does), and the modules of its ``import *``."""

    bound: set[str] = field(default_factory=set)
    used: set[str] = field(default_factory=set)
    late: dict[str, str] = field(default_factory=dict)
    stars: list[str] = field(default_factory=list)


def cell_names(source: str) -> Names:
    """Return the names of a cell."""
    names = Names()
    tree = ast.parse(source)
    guarded = set(_guarded(tree))
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and any(alias.name == "*" for alias in node.names):
            names.stars.append(node.module)
    table = symtable.symtable(source, "<cell>", "exec")
    for symbol in table.get_symbols():
        if symbol.is_assigned() or symbol.is_imported() or symbol.is_namespace():
            names.bound.add(symbol.get_name())
        elif symbol.is_referenced() and symbol.get_name() not in guarded:
            names.used.add(symbol.get_name())
    for child in table.get_children():
        _scope_names(child, names, guarded, now=child.get_type() == "class" or _is_comprehension(child))
    return names


def _scope_names(table: symtable.SymbolTable, names: Names, guarded: set[str], now: bool) -> None:
    for symbol in table.get_symbols():
        name = symbol.get_name()
        if not symbol.is_global() or name in guarded:
            continue
        if symbol.is_assigned():
            names.bound.add(name)
        elif symbol.is_referenced() and now:
            names.used.add(name)
        elif symbol.is_referenced():
            names.late.setdefault(name, table.get_name())
    for child in table.get_children():
        runs_now = now and (child.get_type() == "class" or _is_comprehension(child))
        _scope_names(child, names, guarded, runs_now)


def _is_comprehension(table: symtable.SymbolTable) -> bool:
    return table.get_name() in {"listcomp", "setcomp", "dictcomp", "genexpr"}


def _guarded(tree: ast.Module) -> Iterator[str]:
    """Names that the code can do without: inside ``try`` with a handler for ``NameError``, or annotations."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Try) and any(_catches(handler) for handler in node.handlers):
            for statement in node.body:
                yield from (inner.id for inner in ast.walk(statement) if isinstance(inner, ast.Name))
        elif isinstance(node, ast.arg | ast.AnnAssign) and node.annotation is not None:
            yield from (inner.id for inner in ast.walk(node.annotation) if isinstance(inner, ast.Name))


def _catches(handler: ast.ExceptHandler) -> bool:
    if handler.type is None:
        return True
    return any(
        isinstance(node, ast.Name) and node.id in {"NameError", "Exception", "BaseException"}
        for node in ast.walk(handler.type)
    )


def _imported_names(module: str) -> Iterable[str] | None:
    try:
        loaded = importlib.import_module(module)
    except ImportError:
        return None
    public = getattr(loaded, "__all__", None)
    return public if public is not None else [name for name in vars(loaded) if not name.startswith("_")]
