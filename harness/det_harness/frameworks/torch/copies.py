"""Copies of models that ``copy.deepcopy`` refuses: what can be copied is, what cannot is shared.

A tensor that was computed (a module's last output, the weight of the older ``weight_norm``) is copied without its
graph. An object that has a part which cannot be copied, and nothing of the model, is the same one in the copy: a log
that writes by a thread, say.
"""

from __future__ import annotations

import copy
import types
from typing import Any

import torch

from det_native.errors import CheckpointError
from det_native.heap.copies import ObjectCopy
from det_native.heap.edges import KEPT
from det_native.heap.names import ROOTS
from det_native.heap.snapshot import Snapshot

_DEFINITIONS = (type, types.FunctionType, types.ModuleType)


def copied(models: list[torch.nn.Module]) -> list[torch.nn.Module]:
    """Return copies of models, which share no parameter or buffer with them.

    Raises
    ------
    CheckpointError
        If the copy of a model would share its weights.
    """
    made: list[torch.nn.Module] = ModelCopy().of(models)
    originals = {id(tensor) for model in models for tensor in (*model.parameters(), *model.buffers())}
    for model in made:
        for name, tensor in (*model.named_parameters(), *model.named_buffers()):
            if id(tensor) in originals:
                raise CheckpointError(
                    f"The {type(model).__name__} cannot be copied to load a checkpoint, as its {name} is in an object "
                    "that cannot be: load it in another process, with det.attach(...), which makes the models again."
                )
    return made


class ModelCopy(ObjectCopy):
    """A copy of models, and of all that they hold."""

    def tensor(self, value: torch.Tensor) -> torch.Tensor:
        """Return the copy of a tensor."""
        if not value.is_leaf:
            return value.detach().clone()
        made: torch.Tensor = copy.deepcopy(value, self.copies)
        return made

    def whole(self, value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return self.tensor(value)
        made = super().whole(value)
        return value if made is NotImplemented and _is_outside(value) else made

    def reduced(self, value: Any) -> Any:
        try:
            return super().reduced(value)
        except Exception:
            if not isinstance(value, torch.nn.Module):
                raise
            return object.__new__, (type(value),), dict(vars(value)), None, None, _set_attributes


def _set_attributes(module: torch.nn.Module, attributes: dict[str, Any]) -> None:
    vars(module).update(attributes)


def _is_outside(value: Any) -> bool:
    """Return whether an object has parts that stay in their process, and none that are of a model."""
    if isinstance(value, torch.nn.Module):
        return False
    held = Snapshot({"": ({"": value}, ROOTS)}, special=dict.fromkeys(_DEFINITIONS, KEPT), most_bytes=0)
    if any(isinstance(obj, torch.Tensor | torch.nn.Module) for obj in held.objects):
        return False
    return any(kind.stays and kind is not KEPT for kind in held.kinds)
