"""Training calls as the text of a document shows them, and the names by which they are made."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from det_native.capture.document_values import CONTAINERS, Symbol, Unknown
from det_native.frameworks import find_framework, known_frameworks
from det_native.schema.manifests import CallKind, Framework

_EXPERIMENTAL = "det_native.experimental"
#: Training calls of a context itself, of the frameworks whose contexts have them.
CONTEXT_CALLS: dict[str, CallKind] = {
    "fit": "fit",
    "train": "train",
    "train_and_evaluate": "train_and_evaluate",
}
CREATES = frozenset({f"{_EXPERIMENTAL}.create", f"{_EXPERIMENTAL}.creation.create"})
FITS = frozenset({"fit", "fit_generator"})

#: What ``mode=`` is compared with, by the paths that it is imported from.
MODES = {
    f"{owner}.{name}": name.rpartition(".")[2].lower()
    for owner in ("det_native", _EXPERIMENTAL, f"{_EXPERIMENTAL}.arguments")
    for name in ("LOCAL", "CLUSTER", "Mode.LOCAL", "Mode.CLUSTER")
}
MODE_CLASSES = frozenset({"det_native.Mode", f"{_EXPERIMENTAL}.Mode", f"{_EXPERIMENTAL}.arguments.Mode"})


def framework_of_init(path: str) -> Framework | None:
    """Return the framework whose ``init()`` is at the dotted path, None if none is."""
    return next((one.name for one in known_frameworks() if one.init and path == f"{one.init}.init"), None)


def is_context_call(framework: Framework | None, name: str) -> bool:
    """Return whether a method of a framework's context is a training call."""
    described = find_framework(framework) if framework is not None else None
    return described is not None and name in described.context_calls and name in CONTEXT_CALLS


@dataclass(frozen=True, eq=False)
class FoundCall:
    """A call of ``init()``, ``fit()``, ``train()`` or ``create()`` that the document makes.

    Attributes
    ----------
    kind : {'init', 'fit', 'train', 'create'}
    node : ast.Call
    owner : int
        Index of the cell in which it is written.
    running : int
        Index of the cell that runs when it is made; another one if it is written in a function.
    running_line : int
        Line of that cell's top-level statement.
    positional, keywords
        What it is given, as far as the text tells; :class:`Unknown` elsewhere. Copies of what holds at the call.
    complete : bool
        False if ``*`` or ``**`` hides arguments.
    init : FoundCall or None
        The ``init()`` that made the context of the model.
    sure : bool
        Whether it is certainly a call of ours.
    doubt : str
        Why it may not be reached, empty if it is.
    loop : int or None
        Line of the loop that it stands in.
    occurrence : int
        How many times this very place was reached while the cell runs, this time included.
    framework : str or None
        None where another call tells it.
    """

    kind: CallKind
    node: ast.Call
    owner: int
    running: int
    running_line: int
    positional: tuple[Any, ...] = ()
    keywords: Mapping[str, Any] = field(default_factory=dict)
    complete: bool = True
    init: FoundCall | None = None
    sure: bool = True
    doubt: str = ""
    loop: int | None = None
    occurrence: int = 1
    framework: Framework | None = None


def snapshot(value: Any, tainted: Mapping[int, tuple[object, Unknown]], where: tuple[int, int]) -> Any:
    """Copy a value as it is now; what code has changed out of sight, and what is imported, becomes unknown."""
    if id(value) in tainted:
        return tainted[id(value)][1]
    if isinstance(value, Symbol):
        return Unknown(str(value), *where)
    if isinstance(value, dict):
        return {key: snapshot(entry, tainted, where) for key, entry in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return type(value)(snapshot(entry, tainted, where) for entry in value)
    return value


def containers(value: Any) -> list[Any]:
    """Return all containers in a value, itself first."""
    found: list[Any] = []
    pending = [value]
    while pending:
        one = pending.pop()
        if isinstance(one, CONTAINERS):
            if any(one is other for other in found):
                continue
            found.append(one)
        if isinstance(one, dict):
            pending.extend(one.values())
        elif isinstance(one, list | tuple | set | frozenset):
            pending.extend(one)
    return found
