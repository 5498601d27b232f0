"""Which room may import which, and no circles: the design, checked over every import statement of the source."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCES = {"det_native": ROOT / "det_native", "det_harness": ROOT / "harness/det_harness"}
SOURCES["det_jupyter"] = ROOT / "jupyter_ext/det_jupyter"

#: The only place that imports Ray: a process of its own.
RAY_ROOM = "det_native.master.launch.ray.bridge"
FRAMEWORKS = {"torch", "tensorflow", "keras", "horovod", "ray"}
BASE = {
    "det_native._version",
    "det_native.absent",
    "det_native.errors",
    "det_native.frameworks",
    "det_native.imports",
    "det_native.own_time",
    "det_native.public_names",
    "det_native.unsupported",
}
TRIAL = {"det_native.trial", "det_native.schema", "det_native.runtime"}

# Room -> packages of ours it may import. What is listed after "call" may be imported inside functions only.
ALLOWED: dict[str, set[str]] = {
    "det_native": set(),
    "det_native._version": set(),
    "det_native.absent": set(),
    "det_native.errors": set(),
    "det_native.public_names": set(),
    "det_native.frameworks": set(),
    "det_native.imports": set(),
    "det_native.own_time": set(),
    "det_native.past_history": {"det_native.schema"},
    "det_native.unsupported": set(),
    "det_native.util": set(),
    "det_native.runtime": {"det_native.schema"},
    "det_native.callsite": set(),
    "det_native.logged": set(),
    "det_native.trial": {"det_native.logged", "det_native.schema"},
    "det_native._env_context": {"det_native.schema"},
    "det_native.horovod": {"det_native.schema", "det_native.trial"},
    "det_native.schema": set(),
    "det_native.core": TRIAL | {"det_native.logged", "det_native.loops"},
    "det_native.process": set(),
    "det_native.loops": TRIAL | {"det_native.heap"},
    "det_native.pytorch": TRIAL | {"det_native.heap", "det_native.loops", "det_native.process"},
    "det_native.keras": TRIAL
    | {
        "det_native.capture.first_imports",
        "det_native.heap",
        "det_native.horovod",
        "det_native.process",
        "det_native.tensorboard",
        "det_native.trainers.reports",
    },
    "det_native.estimator": TRIAL | {"det_native.heap", "det_native.horovod", "det_native.keras"},
    "det_native.tensorboard": TRIAL,
    "det_native.capture": {
        "det_native.callsite",
        "det_native.heap",
        "det_native.process",
        "det_native.schema",
    },
    "det_native.kernel_runs": {"det_native.client", "det_native.schema"},
    "det_native.trainers": {"det_native.core", "det_native.pytorch", "det_native.schema", "det_native.trial"},
    "det_native.lightning": {"det_native.trainers"},
    "det_native.transformers": {"det_native.trainers"},
    "det_native.heap": set(),
    "det_native.search": {"det_native.schema"},
    "det_native.client": {
        "det_native.past_history",
        "det_native.runtime",
        "det_native.schema",
        "det_native.heap.call",
        "det_native.capture.model",
        "det_native.capture.hash_cache",
        "det_native.capture.secrets",
        "det_native.capture.bindings",
        "det_native.search",
    },
    "det_native.display": {"det_native.client", "det_native.schema"},
    "det_native.home": {
        "det_native.storage",
        "det_native.capture",
        "det_native.client",
        "det_native.heap.call",
        "det_native.past_history",
        "det_native.runtime",
        "det_native.schema",
    },
    "det_native.storage": {"det_native.schema"},
    "det_native.messaging": {"det_native.schema"},
    "det_native.master": {"det_native.messaging", "det_native.schema", "det_native.search", "det_native.storage"},
    "det_native.compat": set(),
    "det_native.notebook_runs": {
        "det_native.capture.files",
        "det_native.capture.secret_files",
        "det_native.capture.secrets",
        "det_native.client.addresses",
        "det_native.client.connect",
        "det_native.client.remote.asking",
        "det_native.client.remote.ssh",
        "det_native.schema",
    },
    "det_native.launch": {"det_native.schema"},
    "det_native.experimental": {
        "det_native.callsite",
        "det_native.capture",
        "det_native.client",
        "det_native.core.command",
        "det_native.display",
        "det_native.heap",
        "det_native.core",
        "det_native.home",
        "det_native.kernel_runs",
        "det_native.process",
        "det_native.schema",
        "det_native.search",
        "det_native.runtime",
        "det_native.trial",
    },
    "det_harness": {
        "det_native.past_history",
        "det_native.heap",
        "det_native.process",
        "det_native.schema",
        "det_native.storage",
        "det_native.core",
        "det_native.loops",
        "det_native.pytorch",
        "det_native.keras",
        "det_native.estimator",
        "det_native.logged",
        "det_native.tensorboard",
        "det_native.trainers.pytorch",
        "det_native.trial",
        "det_native.runtime",
        "det_native.callsite",
        "det_native.capture.first_imports",
        "det_native.capture.bindings",
        "det_native.capture.failure",
        "det_native.capture.never_sent",
        "det_native.capture.program_paths",
        "det_native.capture.value_formats",
        "det_native.client.session",
        "det_native.compat",
    },
    "det_jupyter": {
        "det_native.client.addresses",
        "det_native.client.remote.target",
        "det_native.client.session",
        "det_native.client.connect",
        "det_native.client.starting",
        "det_native.notebook_runs",
        "det_native.schema",
    },
}

# Inside a function, and only there (docs/decisions tell why).
ALLOWED_IN_CALLS: dict[str, set[str]] = {
    "det_native": set(ALLOWED) - {"det_native.master"},
    "det_native.core": {"det_harness", "det_native.kernel_runs", "det_native.client"},
    "det_native.experimental": {
        "det_harness",
        "det_native.core",
        "det_native.loops",
        "det_native.pytorch",
        "det_native.keras",
        "det_native.estimator",
        "det_native.notebook_runs.folders",
        "det_native.storage",
    },
    # A schedule begins runs; what runs them is another process.
    "det_native.master": {"det_native.notebook_runs.folders", "det_native.notebook_runs.start"},
    "det_native.client": {
        "det_native.notebook_runs",
        "det_harness.frameworks.base",
        "det_harness.program.load",
        "det_harness.local.bundle",
        "det_native.storage",
        "det_native.experimental.directories",
        "det_native.experimental.moving",
    },
    "det_native.home": {"det_harness.trial.heap_file"},
    "det_native.trainers": {"det_native"},
    "det_native.kernel_runs": {"det_native.storage"},
    "det_native.compat": {"det_native", "det_native.keras.old_arguments"},
    "det_native.capture": {"det_native", "det_native.client.home"},
}

# Third-party packages of a room; any other third-party import is an error. Rooms not listed are free.
THIRD_PARTY: dict[str, set[str]] = {
    "det_native": set(),
    "det_native._version": set(),
    "det_native.absent": set(),
    "det_native.errors": set(),
    "det_native.frameworks": set(),
    "det_native.imports": set(),
    "det_native.own_time": set(),
    "det_native.past_history": {"numpy"},
    "det_native.unsupported": set(),
    "det_native.util": set(),
    "det_native.runtime": set(),
    "det_native.callsite": set(),
    "det_native.schema": {"pydantic", "pydantic_core", "yaml"},
    "det_native.search": {"optuna"},
    "det_native.compat": set(),
    "det_native.master": {
        "alembic",
        "apscheduler",
        "click",
        "fastapi",
        "pydantic_core",
        "filelock",
        "psutil",
        "pydantic",
        "requests",
        "sqlalchemy",
        "sse_starlette",
        "starlette",
        "uvicorn",
        "anyio",
        "numpy",
        # Only the bridge imports these.
        "grpc",
        "ray",
    },
}


@dataclass(frozen=True)
class Import:
    """One imported module, and where."""

    importer: str
    imported: str
    line: int
    in_call: bool
    for_types: bool
    names: tuple[str, ...] = ()


@cache
def _room(module: str) -> str:
    for length in (3, 2, 1):
        name = ".".join(module.split(".")[:length])
        if name in ALLOWED:
            return name
    raise AssertionError(f"{module} belongs to no room of the design's table")


def _files(package: str, root: Path) -> Iterator[tuple[str, Path]]:
    for path in sorted(root.rglob("*.py")):
        parts = [package, *path.relative_to(root).with_suffix("").parts]
        if parts[-1] == "__init__":
            parts.pop()
        yield ".".join(parts), path


def _imports(package: str, root: Path) -> Iterator[Import]:
    for module, path in _files(package, root):
        yield from _imports_of(module, ast.parse(path.read_text()), in_call=False, for_types=False)


def _imports_of(module: str, node: ast.AST, *, in_call: bool, for_types: bool) -> Iterator[Import]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.expr):  # most nodes are; no statement is below one
            continue
        types = for_types or (isinstance(child, ast.If) and "TYPE_CHECKING" in ast.dump(child.test))
        call = in_call or isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef)
        if isinstance(child, ast.Import):
            for alias in child.names:
                yield Import(module, alias.name, child.lineno, in_call, for_types)
        elif isinstance(child, ast.ImportFrom):
            assert child.level == 0, f"{module}:{child.lineno}: relative import"
            names = tuple(alias.name for alias in child.names)
            yield Import(module, str(child.module), child.lineno, in_call, for_types, names)
        else:
            yield from _imports_of(module, child, in_call=call, for_types=types)


@cache
def all_imports() -> list[Import]:
    """Return every import of every room: read by the first test that asks, since that takes seconds."""
    return [found for package, root in SOURCES.items() for found in _imports(package, root)]


def _within(module: str, allowed: set[str]) -> bool:
    return any(module == name or module.startswith(name + ".") for name in allowed if name != "det_native") or (
        module == "det_native" and "det_native" in allowed
    )


def _of_ours(module: str) -> bool:
    return module.split(".")[0] in SOURCES


def test_every_module_is_read() -> None:
    assert len({found.importer for found in all_imports()}) > 20


@pytest.mark.parametrize("room", sorted(ALLOWED))
def test_room_imports_only_what_its_row_allows(room: str) -> None:
    wrong = []
    for found in all_imports():
        if _room(found.importer) != room or not _of_ours(found.imported) or found.for_types:
            continue
        own = found.imported != "det_native" and _room(found.imported) == room and room != "det_native"
        allowed = ALLOWED[room] | BASE | (ALLOWED_IN_CALLS.get(room, set()) if found.in_call else set())
        if not own and not _within(found.imported, allowed):
            wrong.append(f"{found.importer}:{found.line} imports {found.imported}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("room", sorted(THIRD_PARTY))
def test_room_uses_only_its_third_party_packages(room: str) -> None:
    import sys

    wrong = [
        f"{found.importer}:{found.line} imports {found.imported}"
        for found in all_imports()
        if _room(found.importer) == room
        and not _of_ours(found.imported)
        and not found.for_types
        and found.imported.split(".")[0] not in sys.stdlib_module_names | THIRD_PARTY[room]
    ]
    assert not wrong, "\n".join(wrong)


def test_no_framework_is_imported_at_module_level_outside_its_room() -> None:
    rooms_of_frameworks = (
        "det_native.pytorch",
        "det_native.keras",
        "det_native.estimator",
        "det_harness.frameworks",
        RAY_ROOM,
    )
    wrong = [
        f"{found.importer}:{found.line} imports {found.imported}"
        for found in all_imports()
        if found.imported.split(".")[0] in FRAMEWORKS
        and not found.in_call
        and not found.for_types
        and not found.importer.startswith(rooms_of_frameworks)
    ]
    assert not wrong, "\n".join(wrong)


def test_only_the_bridge_imports_ray() -> None:
    wrong = [
        f"{found.importer}:{found.line}"
        for found in all_imports()
        if found.imported.split(".")[0] == "ray" and not found.importer.startswith(RAY_ROOM)
    ]
    assert not wrong, "\n".join(wrong)


def _graph() -> dict[str, set[str]]:
    """Return which files of ours each file imports: in functions and for types too.

    A package stands for its ``__init__``; ``from package import name`` is an import of the file ``package/name.py``,
    where there is one.
    """
    graph: dict[str, set[str]] = {
        module: set() for package, root in SOURCES.items() for module, _ in _files(package, root)
    }
    for found in all_imports():
        inside = [f"{found.imported}.{name}" for name in found.names] or [found.imported]
        graph[found.importer] |= {name if name in graph else found.imported for name in inside} & graph.keys()
    return graph


def _circles(graph: dict[str, set[str]]) -> list[list[str]]:
    """Return the groups of files each of which imports itself through the others: the strongly connected components."""
    reached = {module: _reached(graph, module) for module in graph}
    groups = {frozenset(other for other in reached[one] if one in reached[other]) for one in graph}
    return sorted(sorted(group) for group in groups if group)


def _reached(graph: dict[str, set[str]], start: str) -> set[str]:
    found: set[str] = set()
    waiting = [start]
    while waiting:
        new = graph[waiting.pop()] - found
        found |= new
        waiting += new
    return found


def test_circles_are_found() -> None:
    graph = {"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a", "e"}, "e": {"f"}, "f": {"e"}, "g": {"g"}, "h": set()}
    assert _circles(graph) == [["a", "b", "c"], ["e", "f"], ["g"]]


def test_no_circle_of_imports() -> None:
    circles = _circles(_graph())
    assert not circles, "\n".join(f"{len(files)} files in a circle: {', '.join(files)}" for files in circles)
