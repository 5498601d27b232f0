"""What ``load()`` of a checkpoint takes besides: each of it is for one framework."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from det_native.errors import ArgumentError
from det_native.schema import rest


def check(checkpoint: rest.Checkpoint, tags: object, map_location: object, others: Mapping[str, Any]) -> None:
    """Refuse arguments that nothing takes, before anything is fetched.

    Raises
    ------
    ArgumentError
    """
    if others:
        names = ", ".join(f"{name}=" for name in others)
        raise ArgumentError(f"load() takes path=, tags= and map_location=, not {names}; the model is whole.")
    if tags is not None and (isinstance(tags, str) or not isinstance(tags, Sequence | set | frozenset)):
        raise ArgumentError(f"tags must be a list of texts, such as ['serve'], not {tags!r}.")


def loaded(checkpoint: rest.Checkpoint, folder: Path, load: Callable[[], Any], tags: Any, map_location: Any) -> Any:
    """Return a checkpoint's model, by tags or on a device where that is asked for.

    Parameters
    ----------
    folder : Path
        Its files.
    load : callable
        Returns the model.
    tags, map_location
        See ``Checkpoint.load``.
    """
    from det_harness.frameworks.base import harness_of

    harness = harness_of(checkpoint.manifest.framework)
    if tags is not None:
        if map_location is not None:
            raise ArgumentError("tags= is for SavedModels, map_location= for PyTorch: give one of them.")
        return harness.load_tagged(folder, list(tags))
    model = load()
    return model if map_location is None else harness.moved(model, map_location)
