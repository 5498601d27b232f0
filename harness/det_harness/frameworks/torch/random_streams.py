"""PyTorch's global generators of random numbers."""

from __future__ import annotations

import sys
from typing import Any

from det_harness.frameworks.base import RandomStreams
from det_native.process.streams import checkpointed, put_back


class TorchStreams(RandomStreams):
    """``torch`` (uint8) of the CPU, and ``cuda_0`` and so on (uint8) of each GPU that is in use."""

    travel = True

    def seed(self, seed: int, *, own_process: bool) -> None:
        """Seed all of them."""
        import torch

        torch.manual_seed(seed)

    def capture(self) -> dict[str, Any]:
        """Return their states."""
        torch: Any = sys.modules["torch"]
        state = checkpointed(["torch"])
        if torch.cuda.is_available() and torch.cuda.is_initialized():
            generators = torch.cuda.get_rng_state_all()
            state |= {f"cuda_{device}": generator.numpy().copy() for device, generator in enumerate(generators)}
        return state

    def apply(self, state: dict[str, Any]) -> None:
        """Put their states back, of as many GPUs as there are."""
        import torch

        put_back(state, ["torch"])
        if "cuda_0" in state and torch.cuda.is_available():
            for device in range(torch.cuda.device_count()):
                generator = state.get(f"cuda_{device}")
                if generator is not None:
                    torch.cuda.set_rng_state(torch.from_numpy(generator.copy()), device)
