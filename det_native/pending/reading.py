"""What a text reads: the names of which it needs what their values hold.

Of an object of the user's own, or of ours, of which only an attribute is read, it is that attribute. A call of a
function that says so (``det.forget``) reads nothing of what it is given.
"""

from __future__ import annotations

import ast
import copy
import re
import sys
import types
from collections import defaultdict, deque
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from typing import Any

from det_native.capture.observation.kinds import attributes_of, is_of_det_native, is_own
from det_native.capture.reads import reads_in
from det_native.capture.syntax import tree_of
from det_native.capture.transform import transform
from det_native.inspection.attributes import is_library_of_ours

#: Functions with this attribute do nothing with the weights of a model that they are given.
READS_NO_WEIGHTS = "_det_reads_no_weights"
#: What puts something into a container of Python's.
_ADDS = frozenset({"append", "appendleft", "extend", "insert", "add", "update"})
#: The argument by which a training is given callbacks.
CALLBACKS = "callbacks"
_WORD = re.compile(r"[^\W\d]\w*")


@dataclass
class Reading:
    """What a text reads.

    Attributes
    ----------
    names : set of str
        Those that it reads before it has bound them; one with ``*`` is a pattern.
    values : dict of str to object
        For some of them the value, where it is not what the name stands for: an attribute of that.
    everything : bool
        It may read names that do not stand in it.
    stored : dict of str to set of str
        For containers, the names of what the text only puts into them. Who reads the container reads these, too.
    """

    names: set[str] = field(default_factory=set)
    values: dict[str, Any] = field(default_factory=dict)
    everything: bool = False
    stored: dict[str, set[str]] = field(default_factory=dict)

    @property
    def all_names(self) -> set[str]:
        """Return the names that it reads, and those that it only puts into something."""
        return self.names.union(*self.stored.values())

    def add(self, other: Reading) -> None:
        """Read what another text reads, too."""
        self.names |= other.names
        self.values |= other.values
        self.everything |= other.everything
        for container, names in other.stored.items():
            self.stored[container] = self.stored.get(container, set()) | names


def reading_of_cell(
    raw: str, lookup: Callable[[str], Any], trained: Collection[int], renewed: Collection[int] = ()
) -> Reading:
    """Return what a cell reads; of a line that is no Python, every word counts as a name.

    Parameters
    ----------
    raw : str
        Its text, magics and all.
    lookup : callable
        Gives the value of a name.
    trained : collection of int
        Identities of what is trained.
    renewed : collection of int
        Those of callbacks that begin anew in a call that they are given to.
    """
    transformed = transform(raw)
    try:
        body = tree_of(transformed.source).body
        repeated = tree_of(transformed.repeated).body
    except SyntaxError:
        return Reading({*_WORD.findall(raw)})
    reading = reading_of([*body], lookup, trained, renewed)
    reading.add(reading_of([*repeated], lookup, trained, renewed))
    reading.add(reading_of_lines(transformed.left_out, transformed.hidden))
    return reading


def bound_for_certain(raw: str) -> set[str]:
    """Return the names that a cell binds, whatever way it goes."""
    transformed = transform(raw)
    try:
        return {*reads_in(tree_of(transformed.source).body).surely}
    except SyntaxError:
        return set()


def reading_of_lines(lines: Iterable[tuple[int, str]], hidden: Iterable[str]) -> Reading:
    """Return what lines read that are no Python: every word counts as a name; some magics read what nobody knows."""
    several = [line for _, line in lines]
    words = {word for line in several for word in _WORD.findall(line)}
    return Reading(words, everything=any(magic in several for magic in hidden))


def reading_of(
    statements: Iterable[ast.stmt],
    lookup: Callable[[str], Any],
    trained: Collection[int],
    renewed: Collection[int] = (),
) -> Reading:
    """Return what statements read that follow each other; see :func:`reading_of_cell`."""
    several = [copy.deepcopy(one) for one in statements]
    names = [node for one in several for node in ast.walk(one) if isinstance(node, ast.Name)]
    bound = {node.id for node in names if not isinstance(node.ctx, ast.Load)}
    shortened = _Shortened(lookup, trained, bound, renewed)
    several = [shortened.visit(one) for one in several]
    found = reads_in(several)
    loaded = {node.id for node in names if isinstance(node.ctx, ast.Load)}
    reads = {name for name in found.reads if name in loaded or name not in found.deleted}  # `del model` reads nothing
    return Reading(reads, shortened.values, found.runs_text or "*" in reads, shortened.stored)


class _Shortened(ast.NodeTransformer):
    """Leaves out what is not read, and gives attributes that are read by themselves a name."""

    def __init__(
        self,
        lookup: Callable[[str], Any],
        trained: Collection[int],
        bound: Collection[str],
        renewed: Collection[int],
    ) -> None:
        self.values: dict[str, Any] = {}
        self.stored: dict[str, set[str]] = {}
        self._lookup = lookup
        self._trained = trained
        self._bound = bound
        self._renewed = renewed

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        if not isinstance(node.value, ast.Name) or node.value.id in self._bound:
            return self.generic_visit(node)
        owner, attributes = self._lookup(node.value.id), None
        if _is_plain(owner) and id(owner) not in self._trained:
            attributes = attributes_of(owner)
        if attributes is None:
            return self.generic_visit(node)
        if not isinstance(node.ctx, ast.Load):  # it is set, whatever it was
            return ast.Name(f"{node.value.id}.{node.attr}", node.ctx, lineno=node.lineno, col_offset=node.col_offset)
        if node.attr not in attributes or _is_computed(type(owner), node.attr):
            return self.generic_visit(node)
        name = f"{node.value.id}.{node.attr}"
        self.values[name] = attributes[node.attr]
        return ast.Name(name, node.ctx, lineno=node.lineno, col_offset=node.col_offset)

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        if isinstance(node.ctx, ast.Store) and self._is_container(node.value):
            node.value = _nothing(node)
        return self.generic_visit(node)

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        target = node.targets[0]
        if len(node.targets) == 1 and isinstance(target, ast.Subscript) and self._is_container(target.value):
            node.value = self._put_into(target.value, node.value)
        return self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        if hasattr(self._static(node.func), READS_NO_WEIGHTS):
            return _nothing(node)
        if isinstance(node.func, ast.Attribute) and node.func.attr in _ADDS and self._is_container(node.func.value):
            node.args = [self._put_into(node.func.value, argument) for argument in node.args]
            node.func = _nothing(node)
        for keyword in node.keywords:
            if keyword.arg == CALLBACKS:
                keyword.value = self._without_renewed(keyword.value)
        return self.generic_visit(node)

    def _without_renewed(self, given: ast.expr) -> ast.expr:
        """Return an expression without the names of callbacks that begin anew in the call that they are given to."""
        if isinstance(given, ast.List | ast.Tuple):
            given.elts = [self._without_renewed(each) for each in given.elts]
            return given
        if not isinstance(given, ast.Name) or given.id in self._bound:
            return given
        renewed = all(id(value) in self._renewed for value in _elements(self._lookup(given.id)))
        return _nothing(given) if renewed else given

    def _put_into(self, container: ast.expr, value: ast.expr) -> ast.expr:
        """Return what of a value is read when it is put into a container: nothing of what only names stand for."""
        names = _only_names(value)
        if names is None or not isinstance(container, ast.Name):
            return value
        self.stored.setdefault(container.id, set()).update(names.difference(self._bound))
        return _nothing(value)

    def _is_container(self, node: ast.expr) -> bool:
        """Whether an expression names a container of Python's: to put something in reads nothing of what is in it."""
        if not isinstance(node, ast.Name) or node.id in self._bound:
            return False
        value = self._lookup(node.id)
        return type(value) in (list, dict, set, deque, defaultdict) and id(value) not in self._trained

    def _static(self, node: ast.expr) -> Any:
        """Return the function that a call names, where that needs no more than a look into modules."""
        if isinstance(node, ast.Name):
            value = None if node.id in self._bound else self._lookup(node.id)
        elif isinstance(node, ast.Attribute):
            module = self._static(node.value)
            if not isinstance(module, types.ModuleType):
                return None
            ours = is_library_of_ours(module.__name__)  # they load what they are asked for
            value = getattr(module, node.attr, None) if ours else vars(module).get(node.attr)
        else:
            return None
        return value if isinstance(value, types.ModuleType | types.FunctionType) else None


def _only_names(value: ast.expr) -> set[str] | None:
    """Return the names that an expression is made of, if it has nothing else than tuples and the like of them."""
    parts: list[ast.expr | None]
    if isinstance(value, ast.Constant):
        return set()
    if isinstance(value, ast.Name):
        return {value.id}
    if isinstance(value, ast.Tuple | ast.List | ast.Set):
        parts = [*value.elts]
    elif isinstance(value, ast.Dict):
        parts = [*value.keys, *value.values]
    else:
        return None
    names = [None if part is None else _only_names(part) for part in parts]
    return None if None in names else set().union(*(each for each in names if each is not None))


def _elements(value: Any) -> list[Any]:
    return [*value] if type(value) in (list, tuple) else [value]


def _nothing(node: ast.expr) -> ast.expr:
    return ast.Constant(None, lineno=node.lineno, col_offset=node.col_offset)


def _is_plain(value: Any) -> bool:
    """Whether an object is of a class of the user's, or of ours, that gives attributes as Python does."""
    kind = type(value)
    home = kind.__module__
    if not (is_of_det_native(kind) or home == "__main__" or is_own(home)):
        return False
    return all("__getattribute__" not in vars(base) for base in kind.__mro__[:-1])


def _is_computed(kind: type, name: str) -> bool:
    return any(hasattr(vars(base).get(name), "__get__") for base in kind.__mro__)


def main_namespace() -> dict[str, Any]:
    """Return the names of the notebook, or of the script."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return vars(sys.modules["__main__"]) if shell is None else shell.user_ns
