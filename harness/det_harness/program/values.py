"""Values that travel with a bundle, back from their bytes. Only the harness opens them."""

from __future__ import annotations

import io
from typing import Any

from det_native.schema.manifests import Codec


def decode(codec: Codec, content: bytes) -> Any:
    """Return the value that `content` encodes.

    A ``safetensors`` file that holds one tensor called ``value`` is that tensor, else a dictionary of tensors.
    """
    if codec == "cloudpickle":
        import cloudpickle

        return cloudpickle.loads(content)
    if codec in ("npy", "weights"):
        import numpy as np

        return np.load(io.BytesIO(content), allow_pickle=False)
    if codec == "parquet":
        import pandas

        return pandas.read_parquet(io.BytesIO(content))
    from safetensors.torch import load

    tensors = load(content)
    return tensors["value"] if set(tensors) == {"value"} else tensors
