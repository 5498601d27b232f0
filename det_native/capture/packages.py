"""The packages that a program imports, and whether it can do without them."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Iterator, Sequence

from det_native.capture.modules import is_local
from det_native.capture.syntax import tree_of
from det_native.schema.worker_environment import PackageUse

_OWN = frozenset({"det_native", "det_harness", "determined"})
_FORGIVEN = frozenset({"ImportError", "ModuleNotFoundError", "Exception", "BaseException"})


def packages_of(sources: Sequence[tuple[str, str]], others: Iterable[tuple[str, str]] = ()) -> list[PackageUse]:
    """Return the modules of installed packages that pieces of source import, each once.

    Parameters
    ----------
    sources : sequence of (source, label)
        Cells and modules of the program.
    others : iterable of (module, label)
        Modules that are needed though no source imports them: values are made of what is in them.
    """
    found: dict[str, PackageUse] = {}
    uses = [use for source, label in sources for use in _uses(tree_of(source), label, required=True)]
    for use in [*uses, *(PackageUse(module.partition(".")[0], label) for module, label in others)]:
        known = found.get(use.module)
        if known is None or (use.required and not known.required):
            found[use.module] = use
    return [use for use in found.values() if not _is_left_out(use.module)]


def _is_left_out(module: str) -> bool:
    return module in sys.stdlib_module_names or module in _OWN or is_local(module) or not module.isidentifier()


def _uses(node: ast.AST, label: str, *, required: bool) -> Iterator[PackageUse]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import):
            yield from (PackageUse(alias.name.partition(".")[0], label, required) for alias in child.names)
        elif isinstance(child, ast.ImportFrom):
            if child.module and not child.level:
                yield PackageUse(child.module.partition(".")[0], label, required)
        elif isinstance(child, ast.Try) and any(map(_forgives, child.handlers)):
            yield from _uses(child, label, required=False)
        else:
            inside = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
            yield from _uses(child, label, required=required and not inside)


def _forgives(handler: ast.ExceptHandler) -> bool:
    """Whether an import that fails is caught."""
    if handler.type is None:
        return True
    return any(isinstance(part, ast.Name) and part.id in _FORGIVEN for part in ast.walk(handler.type))
