"""Questions about single expressions: where a chain of accesses starts, what a value may share state with."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from det_native.capture.events import Link
from det_native.capture.vocabulary import (
    COPYING_METHODS,
    FRESH_METHODS,
    IDEMPOTENT,
    PASSING_FUNCTIONS,
    REACHING_BUILTINS,
    SHARING_BUILTINS,
    VALUE_ATTRIBUTES,
    VALUE_BUILTINS,
)

Roots = Callable[[str], frozenset[str]]


def chain_of(node: ast.expr) -> tuple[ast.expr, tuple[Link, ...]]:
    """Return the expression that a chain of attributes, items and calls starts from, and the chain.

    ``vars(args).update(rate=1)`` and ``getattr(model, "add")(layer)`` start from `args` and `model`.
    """
    links: list[Link] = []
    while True:
        if isinstance(node, ast.Attribute):
            links.append(("attribute", node.attr))
            node = node.value
        elif isinstance(node, ast.Subscript):
            links.append(("item", ""))
            node = node.value
        elif isinstance(node, ast.Call):
            if links and node.args and dotted(node.func)[:1] and dotted(node.func)[0] in REACHING_BUILTINS:
                node = node.args[0]
            elif isinstance(node.func, ast.Attribute):
                links.append(("call", node.func.attr))
                node = node.func.value
            else:
                links.append(("call", ""))
                node = node.func
        elif isinstance(node, ast.Await | ast.Starred):
            node = node.value
        else:
            return node, tuple(reversed(links))


def dotted(node: ast.expr) -> tuple[str, ...]:
    """Return ``("np", "random", "rand")`` for ``np.random.rand``, and ``()`` for what is not a dotted name."""
    names: list[str] = []
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return ()
    return (node.id, *reversed(names))


@dataclass
class Sharing:
    """What the value of an expression may share state with (see ``Bind``)."""

    aliases: set[str] = field(default_factory=set)
    copies: set[str] = field(default_factory=set)
    through: list[tuple[tuple[str, ...], frozenset[str]]] = field(default_factory=list)
    same: bool = False
    entire: set[str] = field(default_factory=set)

    @property
    def names(self) -> frozenset[str]:
        """All of them, calls included."""
        return frozenset(self.aliases).union(*(names for _, names in self.through))


def sharing_of(node: ast.expr, roots: Roots) -> Sharing:
    """Return what the value of `node` may share state with; `roots` translates local names."""
    passed = isinstance(node, ast.Call) and dotted(node.func)[-1:] and dotted(node.func)[-1] in PASSING_FUNCTIONS
    sharing = Sharing(same=isinstance(node, ast.Name) or bool(passed))
    _collect_sharing(node, roots, sharing)
    return sharing


def shared_names(node: ast.expr, roots: Roots) -> frozenset[str]:
    """Return all names of :func:`sharing_of`, calls included."""
    return sharing_of(node, roots).names


def _collect_sharing(node: ast.expr, roots: Roots, sharing: Sharing) -> None:
    if isinstance(node, ast.Name):
        sharing.aliases |= roots(node.id)
        sharing.entire |= roots(node.id)
    elif isinstance(node, ast.Attribute | ast.Subscript | ast.Await | ast.Starred | ast.Call):
        _collect_chain(node, roots, sharing)
    elif isinstance(node, ast.ListComp | ast.SetComp | ast.GeneratorExp):
        _collect_comprehension(node.elt, node.generators, roots, sharing)
    elif isinstance(node, ast.DictComp):
        _collect_comprehension(node.value, node.generators, roots, sharing)
    else:
        for part in _parts(node):
            _collect_sharing(part, roots, sharing)
        if isinstance(node, ast.BinOp):
            sharing.copies |= shared_names(node.left, roots) | shared_names(node.right, roots)


def _parts(node: ast.expr) -> list[ast.expr]:
    """The expressions whose values become the value of `node`, or elements of it."""
    if isinstance(node, ast.Tuple | ast.List | ast.Set):
        return node.elts
    if isinstance(node, ast.Dict | ast.BoolOp):
        return node.values
    if isinstance(node, ast.IfExp):
        return [node.body, node.orelse]
    if isinstance(node, ast.NamedExpr):
        return [node.value]
    return []


def _collect_chain(node: ast.expr, roots: Roots, sharing: Sharing) -> None:
    start, links = chain_of(node)
    if any(link == "call" and name in FRESH_METHODS for link, name in links):
        _collect_copied(node, roots, sharing)
        return
    if not isinstance(start, ast.Name):
        _collect_sharing(start, roots, sharing)
        return
    path = called_path(node)
    if path is None and _is_plain(links):
        return
    if path is not None and len(path) == 1 and path[0] in VALUE_BUILTINS:
        return
    if path is None:
        sharing.aliases |= roots(start.id)
        return
    names = set(roots(start.id))
    for call in _calls_of(node):
        for argument in [*call.args, *(keyword.value for keyword in call.keywords)]:
            given = sharing_of(argument, roots)
            names |= given.names
            if path[0] in SHARING_BUILTINS:
                sharing.entire |= given.entire
    sharing.through.append((path, frozenset(names)))


def _is_plain(links: tuple[Link, ...]) -> bool:
    """Whether a chain of attributes and items ends at a number or the like, ``x.shape[0]``, whatever it starts from."""
    return links[-2:] == (("attribute", "shape"), ("item", "")) or any(
        name in VALUE_ATTRIBUTES for _, name in links[-1:]
    )


def _collect_copied(node: ast.expr, roots: Roots, sharing: Sharing) -> None:
    """Note what ``x.copy()`` or ``copy.copy(x)`` is a shallow copy of."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return
    path = dotted(node.func)
    if path and node.args and node.func.attr in COPYING_METHODS:
        sharing.through.append((path, shared_names(node.args[0], roots)))
    elif node.func.attr == "copy":
        sharing.copies |= shared_names(node.func.value, roots)


def makes_new(node: ast.expr) -> bool:
    """Return whether the value of an expression is another than all before, if it is a container; a name's counts too.

    Of calls, those are meant that copy one.
    """
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Name) or (
            isinstance(node.func, ast.Attribute) and node.func.attr in {"copy", *COPYING_METHODS}
        )
    return isinstance(node, ast.Name | ast.List | ast.Dict | ast.Set | ast.BinOp)


def called_path(node: ast.expr) -> tuple[str, ...] | None:
    """Return the dotted path of the first call in a chain (``("a", "b")`` for ``a.b(1).c``), None without a call."""
    path: tuple[str, ...] | None = None
    for call in _calls_of(node):
        path = dotted(call.func) or path
    return path


def _calls_of(node: ast.expr) -> Iterator[ast.Call]:
    while isinstance(node, ast.Attribute | ast.Subscript | ast.Await | ast.Starred | ast.Call):
        if isinstance(node, ast.Call):
            yield node
            node = node.func
        else:
            node = node.value


def _collect_comprehension(
    element: ast.expr, generators: Iterable[ast.comprehension], roots: Roots, sharing: Sharing
) -> None:
    targets: dict[str, frozenset[str]] = {}
    for generator in generators:
        shared = shared_names(generator.iter, roots)
        targets.update(dict.fromkeys(target_names(generator.target), shared))
    _collect_sharing(element, lambda name: targets[name] if name in targets else roots(name), sharing)


def target_names(target: ast.expr) -> list[str]:
    """Return the names that assigning to `target` binds."""
    return [node.id for node in ast.walk(target) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]


def applied_twice_differs(name: str, value: ast.expr) -> bool:
    """Whether ``name = value`` computes the new value from the old one in a way that running it twice would show."""
    if not any(isinstance(node, ast.Name) and node.id == name for node in ast.walk(value)):
        return False
    if isinstance(value, ast.Call):
        last = value.func.attr if isinstance(value.func, ast.Attribute) else getattr(value.func, "id", "")
        return last not in IDEMPOTENT
    return True


def reads_itself(target: ast.expr, value: ast.expr) -> bool:
    """Whether the place that is assigned to (``df["a"]``) is read in the value."""
    place = ast.dump(target).replace("Store()", "Load()")
    return any(ast.dump(node) == place for node in ast.walk(value) if isinstance(node, type(target)))


def catches_name_error(handlers: Iterable[ast.ExceptHandler]) -> bool:
    """Whether a ``try`` goes on when a name is not defined."""
    names = {"NameError", "Exception", "BaseException"}
    for handler in handlers:
        if handler.type is None:
            return True
        kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
        if any(dotted(kind)[-1:] and dotted(kind)[-1] in names for kind in kinds):
            return True
    return False
