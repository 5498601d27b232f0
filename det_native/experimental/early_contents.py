"""What the notebook's variables hold when ``init()`` is called: every trial is to have that, whatever its seed."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from det_native.capture.log import CallRecord, current_log
from det_native.capture.reads import reads_in
from det_native.capture.syntax import tree_of
from det_native.capture.transform import transform
from det_native.heap.compare import Entry, Table, is_array
from det_native.heap.names import is_users_name
from det_native.heap.ownership import definer_of

#: Bytes of an array that is read.
_LARGEST = 8 << 20
_MOST_NAMES = 2_000


class EarlyContents:
    """The contents of variables, by their digests.

    Parameters
    ----------
    namespace : mapping of str to value
        The variables as they are now.
    init : CallRecord, optional
        The call of ``init()``: a name that cells bind after it may follow from hyperparameters, whatever it held.
    """

    def __init__(self, namespace: Mapping[str, Any] | None = None, init: CallRecord | None = None) -> None:
        self._init = init
        names = [name for name in namespace or {} if is_users_name(name)][:_MOST_NAMES]
        held = {name: value for name in names if _is_data(value := (namespace or {})[name])}
        self._known: set[tuple[str, ...]] = set()
        with suppress(Exception):  # of values that cannot be read nothing is known
            for entry in Table(held, most_bytes=_LARGEST).entries.values():
                self._known |= {(entry.cls, entry.exact), (entry.part, entry.path, entry.exact)}

    def has(self, entry: Entry, name: str = "") -> bool:
        """Whether an object was the same then; `name` is the variable that holds the input."""
        if is_array(entry.cls):  # numbers that are the same are not so by chance, whatever holds them
            return (entry.cls, entry.exact) in self._known
        name = name or entry.part.partition(", read by ")[0]
        if (name, entry.path, entry.exact) not in self._known:
            return False
        return self._init is None or name not in _bound_after(self._init)


def _is_data(value: Any) -> bool:
    cls = type(value)
    return not callable(value) or bool(definer_of(cls, "parameters") or definer_of(cls, "get_weights"))


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
