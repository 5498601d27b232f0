"""What the notebook's variables hold when ``init()`` is called: every trial is to have that, whatever its seed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from det_native.capture.facts import size_of
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
    """

    def __init__(self, namespace: Mapping[str, Any] | None = None) -> None:
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
        return leaf.kind == "value" and (name, leaf.path, leaf.content.exact) in self._plain

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
