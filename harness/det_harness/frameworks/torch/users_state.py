"""``context.state``, the variables of a user's own loop, in checkpoints: as the state of a callback of ours."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from det_harness.frameworks.torch import nested
from det_native.pytorch import PyTorchCallback
from det_native.pytorch.native_run import PyTorchRunContext

_HOST = torch.device("cpu")


@dataclass(frozen=True)
class Elsewhere:
    """A tensor that is not in host memory, as it is in a checkpoint: a machine without that device can read it.

    Attributes
    ----------
    tensor : torch.Tensor
        In host memory.
    kind : str
        The type of its device.
    """

    tensor: torch.Tensor
    kind: str

    def back(self, device: torch.device) -> torch.Tensor:
        """Return the tensor on the trial's device, if that is of its type; as it is otherwise."""
        return _on(self.tensor, device) if device.type == self.kind else self.tensor


class StateKeeper(PyTorchCallback):
    """Keeps ``context.state`` in checkpoints.

    Parameters
    ----------
    context : PyTorchRunContext
    """

    def __init__(self, context: PyTorchRunContext) -> None:
        self._context = context

    def state_dict(self) -> dict[str, Any]:
        packed: dict[str, Any] = nested.split(dict(self._context.state), _packed, {})
        return packed

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        device = self._context.device
        state = nested.split(state_dict, lambda leaf: leaf.back(device) if isinstance(leaf, Elsewhere) else leaf, {})
        # The same object: the user's code may hold it by another name.
        self._context.state.clear()
        self._context.state.update(state)


def _packed(leaf: Any) -> Any:
    if not isinstance(leaf, torch.Tensor) or leaf.device.type == _HOST.type:
        return leaf
    return Elsewhere(_on(leaf, _HOST), leaf.device.type)


def _on(tensor: torch.Tensor, device: torch.device) -> torch.Tensor:
    return tensor.detach().to(device).requires_grad_(tensor.requires_grad)
