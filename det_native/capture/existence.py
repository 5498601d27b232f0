"""Names of which a statement with a training call only needs that they are there."""

from __future__ import annotations

from collections.abc import Iterable

from det_native.capture.events import Call, Change, Event, Read


def existence_only(events: Iterable[Event], line: int) -> frozenset[str]:
    """Return names that only receive the result of the call in `line`: ``results.append(model.fit(...))``."""
    events = tuple(events)
    receivers = {e.name for e in events if isinstance(e, Change) and e.line <= line <= e.end_line and e.accumulates}
    receivers |= {e.name for e in events if isinstance(e, Change) and e.how == "item" and e.line <= line}
    others = {name for e in events if isinstance(e, Call) for _, names in e.arguments for name in names}
    reads = [e.name for e in events if isinstance(e, Read)]
    return frozenset(name for name in receivers - others if reads.count(name) == 1)
