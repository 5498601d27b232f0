"""What may be given to the methods of handles. Pure functions."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, get_args

from det_native.errors import ArgumentError
from det_native.schema.states import MetricKind

#: What can be measured of a trial on its way, and by the way what its processes use, which is no metric of training.
SYSTEM = "system"
KINDS = (*(kind.value for kind in MetricKind), SYSTEM)


def checked_kind(kind: object) -> str:
    """Return the kind of metrics that is asked for.

    Raises
    ------
    ArgumentError
        If it is none of :data:`KINDS`.
    """
    if not isinstance(kind, str) or kind not in KINDS:
        raise ArgumentError(f'kind must be "training", "validation", "logged" or "system", not {kind!r}.')
    return str(kind)


def renumbered_local(name: str) -> str | None:
    """Return what to say of a name that runs of this machine had in earlier versions, ``local-3``; None of others."""
    if re.fullmatch(r"local-[0-9]+([/.][0-9]+)?", name) is None:
        return None
    return f"{name}: local runs have numbers like all experiments now; `det experiment list` shows them."


def checked_number(number: object, name: str) -> int:
    """Return a number by which a master knows something, at least 1; text that is one is taken too.

    Parameters
    ----------
    number : object
    name : str
        The argument's name, for the message.

    Raises
    ------
    ArgumentError
    """
    text = str(number)
    if (renumbered := renumbered_local(text)) is not None:
        raise ArgumentError(renumbered)
    if isinstance(number, bool) or not isinstance(number, int | str) or not (text.isdecimal() and int(text) > 0):
        raise ArgumentError(f"{name} must be the number that the master gave it, from 1 on, not {number!r}.")
    return int(text)


Show = Literal["view", "bar", "none"]


def checked_show(show: object) -> Show:
    """Return what is seen of a training while it goes on.

    Raises
    ------
    ArgumentError
        If it is neither ``"view"`` nor ``"bar"`` nor ``"none"``.
    """
    if show not in get_args(Show):
        raise ArgumentError(f'show must be "view", "bar" or "none", not {show!r}.')
    chosen: Show = show  # type: ignore[assignment]  # looked up just now
    return chosen


def checked_limit(limit: object) -> int:
    """Return how many are asked for, at least 1.

    Raises
    ------
    ArgumentError
    """
    if not isinstance(limit, int) or limit < 1:
        raise ArgumentError(f"limit must be a number, at least 1, not {limit!r}.")
    return limit


def checked_metadata(metadata: object) -> dict[str, Any]:
    """Return metadata as a dictionary of plain values.

    Raises
    ------
    ArgumentError
        If it is none, or has what JSON does not.
    """
    if not isinstance(metadata, Mapping) or not all(isinstance(key, str) for key in metadata):
        raise ArgumentError(
            f"metadata must be a dictionary with names for keys, such as {{'data': 'v2'}}, not {metadata!r}."
        )
    for key, value in metadata.items():
        try:
            json.dumps(value, allow_nan=False)
        except (TypeError, ValueError) as error:
            raise ArgumentError(
                f"metadata[{key!r}] must be of plain values (text, numbers, lists, dictionaries): {error}."
            ) from None
    return dict(metadata)


def checked_keys(keys: object) -> list[str]:
    """Return names to remove; one alone may be given as it is.

    Raises
    ------
    ArgumentError
    """
    if isinstance(keys, str):
        return [keys]
    given: list[Any] = list(keys) if isinstance(keys, Iterable) else [keys]
    if not all(isinstance(key, str) for key in given):
        raise ArgumentError(f"keys must be a list of names, not {keys!r}.")
    return given


def checked_labels(labels: object) -> list[str]:
    """Return labels as a list.

    Raises
    ------
    ArgumentError
        If they are no texts; a single text is taken for no list of its letters.
    """
    good = isinstance(labels, Iterable) and not isinstance(labels, str | Mapping)
    given = list(labels) if good else []  # type: ignore[call-overload]
    if not good or not all(isinstance(label, str) and label for label in given):
        raise ArgumentError(f"labels must be a list of texts, such as ['baseline'], not {labels!r}.")
    return given


def checked_text(value: object, name: str) -> str:
    """Return a text.

    Raises
    ------
    ArgumentError
    """
    if not isinstance(value, str):
        raise ArgumentError(f"{name} must be a text, not {value!r}.")
    return value


def metric_names(given: Sequence[str | Sequence[str]]) -> list[str] | None:
    """Return the names of metrics to draw, each given by itself or in a list; None, that is all, where there is none.

    Raises
    ------
    ArgumentError
        If something else is among them.
    """
    names: list[str] = []
    for each in given:
        entries = [each] if isinstance(each, str) or not isinstance(each, Sequence | set | frozenset) else list(each)
        wrong = [entry for entry in entries if not isinstance(entry, str)]
        if wrong:
            raise ArgumentError(f"plot() takes names of metrics, such as plot('loss'), not {wrong[0]!r}.")
        names += entries
    return names or None
