"""What the notebook's variables hold when ``init()`` is called: every trial is to have that, whatever its seed."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from det_native.capture.log import CallRecord, current_log
from det_native.capture.reads import reads_in
from det_native.capture.syntax import tree_of
from det_native.capture.transform import transform
from det_native.capture.value_formats import size_of
from det_native.inspection.registry import adapter_of
from det_native.proof.content import content_of
from det_native.proof.leaves import Leaf, leaves_of

# Bytes of arrays that are read, of a variable and of all together.
_LARGEST = 8 << 20
_ROOM = 64 << 20
_MOST_NAMES = 2_000


class EarlyContents:
    """The contents of variables, by their fingerprints.

    Parameters
    ----------
    namespace : mapping of str to value
        The variables as they are now.
    init : CallRecord, optional
        The call of ``init()``: a name that cells bind after it may follow from hyperparameters, whatever it held.
    """

    def __init__(self, namespace: Mapping[str, Any] | None = None, init: CallRecord | None = None) -> None:
        self._init = init
        self._data: set[str] = set()
        self._plain: set[tuple[str, str, str]] = set()
        self._room = _ROOM
        for name, value in list((namespace or {}).items())[:_MOST_NAMES]:
            if not name.startswith("_") and name not in ("In", "Out"):
                self._read(name, value)

    def has(self, name: str, leaf: Leaf) -> bool:
        """Whether a part of an input, held by the variable `name`, was the same then."""
        if leaf.kind in ("data", "library"):
            return leaf.content.exact in self._data
        if leaf.kind != "value" or (name, leaf.path, leaf.content.exact) not in self._plain:
            return False
        return self._init is None or name not in _bound_after(self._init)

    def _read(self, name: str, value: Any) -> None:
        try:
            weights = _weights_of(value)
            if weights is not None:
                if self._take(_bytes_of(weights)):
                    self._data |= {content_of(weights).exact, content_of(value).exact}
                return
            if callable(value) or not self._take(_bytes_of(value)):
                return
            for leaf in leaves_of(value):
                if leaf.kind in ("data", "library"):
                    self._data.add(leaf.content.exact)
                elif leaf.kind == "value":
                    self._plain.add((name, leaf.path, leaf.content.exact))
        except Exception:  # noqa: BLE001 (a value that cannot be read is unknown)
            return

    def _take(self, size: int) -> bool:
        if size > min(_LARGEST, self._room):
            return False
        self._room -= size
        return True


def _bound_after(call: CallRecord) -> set[str]:
    """Return the names that cells have bound since a call; in its own cell those of the statements below it."""
    names: set[str] = set()
    log = current_log()
    for execution in log.executions[call.running :] if log is not None else ():
        first = call.running_line + 1 if execution.index == call.running else 1
        with suppress(SyntaxError):
            body = tree_of(transform(execution.source).source).body
            names |= reads_in(statement for statement in body if statement.lineno >= first).bound
    return names


def _weights_of(value: Any) -> list[Any] | None:
    adapter = adapter_of(type(value))
    return None if adapter is None else adapter.weights(value)


def _bytes_of(value: Any) -> int:
    """Return how many bytes the arrays in a value have, as far as that is seen at once."""
    parts = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list | tuple) else [value]
    held = getattr(value, "__dict__", None)
    if isinstance(held, dict):
        parts = [
            *parts,
            *held.values(),
            *(part for inner in held.values() if isinstance(inner, tuple) for part in inner),
        ]
    return sum(size_of(part) or 0 for part in parts[:_MOST_NAMES])
