"""Finds the training calls in the text of a document, by imports and names alone: no value is worked out."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from det_native.capture.bindings import imports_in, star_names
from det_native.frameworks import get_framework, known_frameworks
from det_native.schema.manifests import CallKind, Framework

_EXPERIMENTAL = "det_native.experimental"
#: ``determined`` and its parts are other names of ours (see ``det_native.compat``).
_ALIAS, _OURS = "determined", "det_native"
#: Training calls of a context itself, of the frameworks whose contexts have them.
CONTEXT_CALLS: dict[str, CallKind] = {
    "fit": "fit",
    "train": "train",
    "epochs": "train",
    "train_and_evaluate": "train_and_evaluate",
}
CREATES = frozenset({f"{_EXPERIMENTAL}.create", f"{_EXPERIMENTAL}.creation.create"})
FITS = frozenset({"fit", "fit_generator"})

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_Comprehension = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp


@dataclass(frozen=True)
class Route:
    """How a place in the text comes to run.

    Attributes
    ----------
    running : int
        Index of the cell that runs then; another one than it is written in if that is a function.
    line : int
        Line of that cell's top-level statement.
    order : tuple
        By which calls are in the order of the document: the cell, and the places through which it is reached.
    loop : int or None
        Line of the loop that it stands in.
    """

    running: int
    line: int
    order: tuple[tuple[int, ...], ...]
    loop: int | None = None


@dataclass(frozen=True, eq=False)
class FoundCall:
    """A call of ``init()``, ``create()`` or of a training that the document makes.

    Attributes
    ----------
    kind : {'init', 'fit', 'train', 'train_and_evaluate', 'create'}
    node : ast.Call
    owner : int
        Index of the cell in which it is written.
    route : Route
    sure : bool
        Whether it is a call of ours by the names in it.
    framework : str or None
        None where another call tells it.
    occurrence : int
        How many times this very place was reached while the cell runs, this time included.
    """

    kind: CallKind
    node: ast.Call
    owner: int
    route: Route
    sure: bool = True
    framework: Framework | None = None
    occurrence: int = 1

    @property
    def running(self) -> int:
        """Index of the cell that runs when it is made."""
        return self.route.running


def find_calls(trees: Sequence[ast.Module | None]) -> list[FoundCall]:
    """Return the calls of ``init()``, ``create()`` and of trainings that a document makes, in order.

    Parameters
    ----------
    trees : sequence of ast.Module or None
        The cells as Python; None for those that are not.
    """
    return _Finder(trees).find()


class Imports:
    """What the imports of a document call things of modules."""

    def __init__(self, trees: Sequence[ast.Module | None]) -> None:
        self._paths: dict[str, str] = {}
        for one in (one for tree in trees if tree is not None for one in imports_in(tree)):
            if one.name == "*":
                own = _ours(one.module)
                self._paths |= {name: f"{own}.{name}" for name in (star_names(own) or () if own == _OURS else ())}
            else:
                self._paths[one.name] = _ours(one.path())

    def path(self, node: ast.expr) -> str:
        """Return the dotted path of something imported, empty for anything else."""
        names: list[str] = []
        while isinstance(node, ast.Attribute):
            names.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name) or node.id not in self._paths:
            return ""
        return ".".join([self._paths[node.id], *reversed(names)])


def _ours(path: str) -> str:
    first, dot, rest = path.partition(".")
    return f"{_OURS}{dot}{rest}" if first == _ALIAS else path


def parents_of(tree: ast.AST) -> dict[ast.AST, ast.AST]:
    """Return the node around each node."""
    return {child: parent for parent in ast.walk(tree) for child in ast.iter_child_nodes(parent)}


class _Finder:
    def __init__(self, trees: Sequence[ast.Module | None]) -> None:
        self.imports = Imports(trees)
        self.parents: dict[ast.AST, ast.AST] = {}
        self.nodes: list[tuple[int, ast.AST]] = []
        for cell, tree in enumerate(trees):
            if tree is not None:
                self.parents |= parents_of(tree)
                self.nodes.extend((cell, node) for node in ast.walk(tree))
        self.calls = [(cell, node) for cell, node in self.nodes if isinstance(node, ast.Call)]
        self.inits = {f"{one.init}.init": one.name for one in known_frameworks() if one.init}
        self.contexts = dict(self._contexts())
        self.wrapped = set(self._wrapped())

    def find(self) -> list[FoundCall]:
        found: list[FoundCall] = []
        for cell, node in self.calls:
            kind, framework, sure = self._kind(cell, node)
            if kind is None:
                continue
            found += [FoundCall(kind, node, cell, one, sure, framework) for one in self._routes(cell, node)]
        found.sort(key=lambda call: call.route.order)
        times = Counter[tuple[ast.Call, int]]()
        for at, call in enumerate(found):
            times[call.node, call.running] += 1
            found[at] = replace(call, occurrence=times[call.node, call.running])
        return found

    # What a call is.

    def _kind(self, cell: int, node: ast.Call) -> tuple[CallKind | None, Framework | None, bool]:
        path = self.imports.path(node.func)
        if path in self.inits:
            return "init", self.inits[path], True
        if path in CREATES:
            return "create", None, True
        if path or not isinstance(node.func, ast.Attribute):
            return None, None, False
        receiver, name = node.func.value, node.func.attr
        framework = self._framework_of_context(receiver)
        if framework is not None and get_framework(framework).context_calls:
            own = name in get_framework(framework).context_calls
            return (CONTEXT_CALLS.get(name) if own else None), framework, own
        if name not in FITS or not self._models_train():
            return None, None, False
        sure = isinstance(receiver, ast.Name) and any(
            receiver.id == wrapped and (at, line) <= (cell, node.lineno) for wrapped, at, line in self.wrapped
        )
        return "fit", None, sure or _wraps(receiver)

    def _models_train(self) -> bool:
        """Whether a model's own ``fit()`` may be a call of ours: by the frameworks of the contexts that there are."""
        used = {self.inits[path] for _, node in self.calls if (path := self.imports.path(node.func)) in self.inits}
        return not used or any(not get_framework(one).context_calls for one in used)

    def _framework_of_context(self, receiver: ast.expr) -> Framework | None:
        if isinstance(receiver, ast.Name):
            return self.contexts.get(receiver.id)
        return self.inits.get(self.imports.path(receiver.func)) if isinstance(receiver, ast.Call) else None

    def _contexts(self) -> Iterator[tuple[str, Framework]]:
        for _, node in self.calls:
            path = self.imports.path(node.func)
            if path in self.inits:
                for name in self._assigned(node):
                    yield name, self.inits[path]

    def _wrapped(self) -> Iterator[tuple[str, int, int]]:
        """Yield the names of wrapped models, and from where on they are."""
        for cell, node in self.calls:
            if isinstance(node.func, ast.Attribute) and node.func.attr == "wrap_model":
                names = [*self._assigned(node), *(one.id for one in node.args[:1] if isinstance(one, ast.Name))]
                for name in names:
                    yield name, cell, node.lineno

    def _assigned(self, node: ast.Call) -> list[str]:
        """Names that the result of a call is given."""
        parent = self.parents[node]
        targets: list[ast.expr] = parent.targets if isinstance(parent, ast.Assign) else []
        if isinstance(parent, ast.AnnAssign | ast.NamedExpr):
            targets = [parent.target]
        elif isinstance(parent, ast.withitem) and parent.optional_vars is not None:
            targets = [parent.optional_vars]
        return [target.id for target in targets if isinstance(target, ast.Name)]

    # Where it runs.

    def _routes(self, cell: int, node: ast.expr, inside: tuple[ast.AST, ...] = ()) -> list[Route]:
        loop: int | None = None
        child: ast.AST = node
        parent = self.parents[child]
        while not isinstance(parent, ast.Module):
            if isinstance(parent, _Function) and child in parent.body:
                return self._callers(node, parent, inside, loop)
            if _repeats(parent, child):
                loop = loop or getattr(parent, "lineno", None)
            child, parent = parent, self.parents[parent]
        assert isinstance(child, ast.stmt)
        return [Route(cell, child.lineno, ((cell,), _end(node)), loop)]

    def _callers(
        self, node: ast.expr, function: _Function, inside: tuple[ast.AST, ...], loop: int | None
    ) -> list[Route]:
        """Every place that names a function is taken for a call of it."""
        if function in inside:
            return []
        method = isinstance(self.parents[function], ast.ClassDef)
        return [
            Route(route.running, route.line, (*route.order, _end(node)), loop or route.loop)
            for at, one in self.nodes
            if (isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load) and one.id == function.name)
            or (method and isinstance(one, ast.Attribute) and one.attr == function.name)
            for route in self._routes(at, one, (*inside, function))
        ]


def _end(node: ast.AST) -> tuple[int, int]:
    return getattr(node, "end_lineno", 0), getattr(node, "end_col_offset", 0)


def _wraps(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "wrap_model"


def _repeats(parent: ast.AST, child: ast.AST) -> bool:
    if isinstance(parent, ast.For | ast.AsyncFor):
        return child in parent.body
    if isinstance(parent, _Comprehension):
        return child is not parent.generators[0]
    return isinstance(parent, ast.While)


def instruction_position(call: ast.Call) -> tuple[int, int]:
    """Return line and column of the instruction that makes a call: what its frame reports when it happens.

    They differ from those of the expression where a chain of calls goes over several lines: a method that is called
    with plain arguments is at its name.
    """
    method = call.func
    is_plain = not any(isinstance(one, ast.Starred) for one in call.args) and all(one.arg for one in call.keywords)
    if is_plain and isinstance(method, ast.Attribute) and method.end_lineno != call.lineno:
        return method.end_lineno or 0, (method.end_col_offset or 0) - len(method.attr.encode())
    return call.lineno, call.col_offset
