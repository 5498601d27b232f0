"""Values that travel with a bundle, back from their bytes."""

from __future__ import annotations

from collections.abc import Callable, MutableMapping, Sequence
from typing import Any

from det_native.errors import TrialDefinitionError
from det_native.heap.values import AnotherBuildError, put_values
from det_native.schema.manifests import ValueEntry


def bind(
    entries: Sequence[ValueEntry],
    names: MutableMapping[str, Any],
    read_blob: Callable[[str], bytes],
    place: Callable[[str], str] = str,
) -> None:
    """Bind names of a program to values that travelled; an object that takes its state in place stays the same object.

    Parameters
    ----------
    entries : sequence of ValueEntry
        Those that are bound now.
    place : callable
        Gives the path that is used here instead of one in a value.

    Raises
    ------
    TrialDefinitionError
        If a state is of an object of another build than the program has made.
    """
    together: dict[str, dict[str, bool]] = {}
    for entry in entries:
        together.setdefault(entry.sha256, {})[entry.name] = entry.in_place
    for sha256, wanted in together.items():
        try:
            put_values(read_blob(sha256), names, wanted, place)
        except AnotherBuildError as error:
            raise TrialDefinitionError(
                f"What `{error.name}` came to in the notebook travels, and here it is of another build: its cell has "
                "made something else. Make it in the cell that changes its build, or have that cell run again by the "
                "tag det-include."
            ) from error
