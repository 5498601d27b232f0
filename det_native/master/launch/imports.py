"""Which well-known libraries a program imports: standbys for the next one like it import them beforehand."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from det_native.schema.manifests import BundleManifest

# Slow to import, and known to neither touch a GPU nor read the user's settings when they are. Anything else is left to
# the program itself.
LIBRARIES = frozenset(
    {
        *("numpy", "scipy", "pandas", "pyarrow", "sklearn", "statsmodels", "networkx", "sympy"),
        *("matplotlib", "seaborn", "PIL", "h5py", "tqdm", "torchvision", "torchmetrics"),
    }
)


def well_known_imports(bundle: BundleManifest) -> tuple[str, ...]:
    """Return the modules of well-known libraries that a program's cells import outside functions; nothing is run."""
    found: set[str] = set()
    for cell in bundle.program.cells:
        try:
            tree = ast.parse(cell.source)
        except (SyntaxError, ValueError, RecursionError):  # the check of the bundle will tell
            continue
        found |= {name for name in _imported(tree) if name.partition(".")[0] in LIBRARIES}
    return tuple(sorted(found))


def _imported(node: ast.AST) -> Iterator[str]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import):
            yield from (alias.name for alias in child.names)
        elif isinstance(child, ast.ImportFrom):
            if child.module is not None and child.level == 0:
                yield child.module
        elif not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.expr):
            yield from _imported(child)
