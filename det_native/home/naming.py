"""What the user calls a model, as an expression: ``model``, ``models[1]``, ``trainer.net``."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from types import FrameType
from typing import Any

from det_native.capture.observation.kinds import is_own

_OURS = ("det_native", "det_harness")
#: What IPython remembers of the cells.
_REMEMBERED = frozenset({"In", "Out"})


def names_of(models: Sequence[Any]) -> list[str]:
    """Return what the user calls each of these models where this is called; empty where no name is known.

    A name of the notebook comes first, then those of the functions that are running, then what a container or an object
    with a name holds.
    """
    namespaces = list(_namespaces())
    return [_name(model, namespaces) for model in models]


def _main_namespace() -> dict[str, Any]:
    """Return the names of the notebook, or of the script."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return vars(sys.modules["__main__"]) if shell is None else shell.user_ns


def _name(model: Any, namespaces: Sequence[Mapping[str, Any]]) -> str:
    for entries in (_named, _held):
        for namespace in namespaces:
            for name, value in entries(namespace):
                if value is model:
                    return name
    return ""


def _namespaces() -> Iterator[dict[str, Any]]:
    yield dict(_main_namespace())
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        module = str(frame.f_globals.get("__name__", ""))
        if module.partition(".")[0] not in _OURS and (module == "__main__" or is_own(module)):
            yield dict(frame.f_locals)
        frame = frame.f_back


def _named(namespace: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    return ((name, value) for name, value in namespace.items() if name[:1] != "_" and name not in _REMEMBERED)


def _held(namespace: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, holder in _named(namespace):
        if isinstance(holder, list | tuple):
            yield from ((f"{name}[{place}]", value) for place, value in enumerate(holder))
        elif isinstance(holder, dict):
            yield from ((f"{name}[{key!r}]", value) for key, value in holder.items() if isinstance(key, str | int))
        elif type(holder).__module__ == "__main__" or is_own(type(holder).__module__):
            attributes = getattr(holder, "__dict__", {})
            yield from ((f"{name}.{key}", value) for key, value in attributes.items() if not key.startswith("_"))
