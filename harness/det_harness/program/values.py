"""Values that travel with a bundle, back from their bytes. Only the harness opens them."""

from __future__ import annotations

import io
from collections.abc import Callable, MutableMapping, Sequence
from typing import Any

from det_native.errors import TrialDefinitionError
from det_native.inspection.objects import AnotherBuildError, only_object, put_objects, taken
from det_native.schema.manifests import Codec, ValueEntry


def bind(entries: Sequence[ValueEntry], names: MutableMapping[str, Any], read_blob: Callable[[str], bytes]) -> None:
    """Bind names of a program to values that travelled; an object that takes its state in place stays the same object.

    Parameters
    ----------
    entries : sequence of ValueEntry
        Those that are bound now.
    names : mapping
        Of the program.
    read_blob : callable
        Gives the raw content of a blob by its hash.

    Raises
    ------
    TrialDefinitionError
        If a state is of an object of another build than the program has made.
    """
    together: dict[str, dict[str, bool]] = {}
    for entry in entries:
        if entry.codec == "objects":
            together.setdefault(entry.sha256, {})[entry.name] = entry.in_place
        else:
            value = decode(entry.codec, read_blob(entry.sha256))
            names[entry.name] = taken(names.get(entry.name), value) if entry.in_place else value
    for sha256, wanted in together.items():
        try:
            put_objects(read_blob(sha256), names, wanted)
        except AnotherBuildError as error:
            raise TrialDefinitionError(
                f"What `{error.name}` came to in the notebook travels, and here it is of another build: its cell has "
                "made something else. Make it in the cell that changes its build, or have that cell run again by the "
                "tag det-include."
            ) from error


def decode(codec: Codec, content: bytes) -> Any:
    """Return the value that `content` encodes.

    A ``safetensors`` file that holds one tensor called ``value`` is that tensor, else a dictionary of tensors.
    """
    if codec == "objects":
        return only_object(content)
    if codec in ("npy", "weights"):
        import numpy as np

        return np.load(io.BytesIO(content), allow_pickle=False)
    if codec == "parquet":
        import pandas

        return pandas.read_parquet(io.BytesIO(content))
    from safetensors.torch import load

    tensors = load(content)
    return tensors["value"] if set(tensors) == {"value"} else tensors
