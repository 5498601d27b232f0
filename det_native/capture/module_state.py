"""Which functions of the user's own modules change what their module keeps between calls, told by its source."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache

from det_native.capture.analysis import Statement, analyse
from det_native.capture.events import Bind, Call, Change, Code, Event, Star, bound_names, flat
from det_native.capture.modules import is_local, module_file
from det_native.capture.vocabulary import CONTAINER_CHANGES

Path = tuple[str, ...]


def setters_in(modules: Iterable[str]) -> frozenset[Path]:
    """Return dotted paths of what sets a state when it is called: ``("conf", "set_rate")``, ``("conf", "C", "set")``.

    Parameters
    ----------
    modules : iterable of str
        Full names of the user's own modules; what they import of each other is found by itself.
    """
    return frozenset(path for module in modules for path in _setters(module, ()))


def _setters(module: str, above: tuple[str, ...]) -> frozenset[Path]:
    """Return those of one module, what it has imported from others included; `above` are being read already."""
    file = module_file(module)
    if file is None or module in above:
        return frozenset()
    try:
        statements = _read(str(file), file.stat().st_mtime_ns)
    except (OSError, SyntaxError, ValueError):
        return frozenset()
    package = module if file.name == "__init__.py" else module.rpartition(".")[0]
    here = tuple(module.split("."))
    events = [event for statement in statements for event in flat(statement.events)]
    found = {(*here, *name) for name in _own_setters(events)}
    for event in events:
        origin = event.origin if isinstance(event, Bind) else event if isinstance(event, Star) else None
        if origin is None or (isinstance(event, Bind) and event.origin.kind != "import"):
            continue
        other = _absolute(origin.module, origin.level, package)
        if not other or not is_local(other):
            continue
        for path in _setters(other, (*above, module)):
            name = path[len(other.split(".")) :]
            if isinstance(event, Star):
                found.add((*here, *name))
            elif isinstance(event, Bind) and name[0] == event.origin.attribute:
                found.add((*here, event.name, *name[1:]))
    return frozenset(found)


@lru_cache(maxsize=256)
def _read(file: str, changed: int) -> tuple[Statement, ...]:
    """Analyse a file; `changed` is its time, so that an edited one is read again."""
    with open(file, encoding="utf-8") as source:
        return analyse(source.read())


def _absolute(module: str, level: int, package: str) -> str:
    if not level:
        return module
    parents = package.split(".")[: len(package.split(".")) - level + 1]
    return ".".join([*parents, *([module] if module else [])])


def _own_setters(events: Iterable[Event]) -> set[Path]:
    """Return names of functions, and of methods with their class, that set a state or call one that does."""
    events = list(events)
    kept = frozenset(bound_names(event for event in events if not _is_foreign_import(event)))
    defined = (event for event in events if isinstance(event, Bind) and event.origin.kind in {"def", "class"})
    codes = {tuple(code.name.split(".")): code for event in defined for code in event.codes}
    found = {name for name, code in codes.items() if any(_sets(event, code, kept) for event in flat(code.events))}
    while True:
        more = {name for name, code in codes.items() if not found.isdisjoint(_called(code))} - found
        if not more:
            return found
        found |= more


def _is_foreign_import(event: Event) -> bool:
    return isinstance(event, Bind) and event.origin.kind == "import" and not is_local(event.origin.module or "builtins")


def _sets(event: Event, code: Code, kept: frozenset[str]) -> bool:
    """Whether an event of a function's body changes what outlives the call: a global name, or its own class."""
    if isinstance(event, Bind):
        return True  # of a name that it declares global
    if not isinstance(event, Change):
        return False
    if event.name in code.parameters:
        return event.how != "call" and event.name == "cls" and code.parameters[0] == "cls"
    return event.name in kept and (event.how != "call" or event.chain[-1][1] in CONTAINER_CHANGES)


def _called(code: Code) -> Iterator[Path]:
    for event in flat(code.events):
        if isinstance(event, Call):
            yield event.callee
