"""PyTorch's global stream."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from det_native.process.stream import State, Stream


def _read_stream() -> State:
    return {"torch": ("uint8", sys.modules["torch"].get_rng_state().numpy().tobytes())}


def _put_back_stream(states: Mapping[str, Any]) -> None:
    torch: Any = sys.modules["torch"]
    torch.set_rng_state(torch.from_numpy(states["torch"].copy()))


STREAMS = (Stream("torch", _read_stream, _put_back_stream, begins="torch"),)
