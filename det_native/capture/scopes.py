"""Which names belong to a scope of Python code."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field


@dataclass
class Frame:
    """A scope. `local` is None for the module; `aliases` says what local names may share state with, `imports`
    what local names import, `returned` what the result may be or be a part of, `given_back` which parameters it may
    be."""

    local: set[str] | None = None
    is_class: bool = False
    declared: set[str] = field(default_factory=set)
    parameters: tuple[str, ...] = ()
    aliases: dict[str, frozenset[str]] = field(default_factory=dict)
    imports: dict[str, tuple[str, ...]] = field(default_factory=dict)
    returned: set[str] = field(default_factory=set)
    given_back: set[str] = field(default_factory=set)

    def roots(self, name: str) -> frozenset[str]:
        """Return what a local name may stand for: for a parameter, itself, until it is bound to something else."""
        return self.aliases.get(name, frozenset({name}) if name in self.parameters else frozenset())

    def stands_for(self, name: str, shared: frozenset[str], instead: bool) -> None:
        """Note that a local name may share state with `shared`, a parameter `instead` of with what it was given."""
        before = frozenset() if instead and name in self.parameters else self.roots(name)
        self.aliases[name] = before | (shared if name in self.parameters else shared - {name})


def annotations_of(node: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[ast.expr]:
    """All annotations of a function's parameters and result."""
    arguments = node.args
    for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg):
        if argument is not None and argument.annotation is not None:
            yield argument.annotation
    if node.returns is not None:
        yield node.returns


def own_nodes(body: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """All nodes of a scope, without those of the scopes inside it (their definitions themselves are included)."""
    for node in body:
        yield node
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield from own_nodes(node.decorator_list)
        elif isinstance(node, ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp):
            yield from (inner for inner in ast.walk(node) if isinstance(inner, ast.NamedExpr))
        elif not isinstance(node, ast.Lambda):
            yield from own_nodes(ast.iter_child_nodes(node))


def bound_names(body: Sequence[ast.AST]) -> set[str]:
    """Return the names that the statements of a scope bind, ``global`` ones included."""
    names: set[str] = set()
    for node in own_nodes(body):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store | ast.Del):
            names.add(node.id)
        elif isinstance(node, ast.NamedExpr):
            names.add(node.target.id)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            names.update(alias.asname or alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) and node.name is not None:
            names.add(node.name)
        elif isinstance(node, ast.MatchMapping) and node.rest is not None:
            names.add(node.rest)
    outer = {name for node in own_nodes(body) if isinstance(node, ast.Nonlocal) for name in node.names}
    return names - outer


def declared_global(body: Sequence[ast.AST]) -> set[str]:
    """Return the names that a scope declares ``global``."""
    return {name for node in own_nodes(body) if isinstance(node, ast.Global) for name in node.names}
