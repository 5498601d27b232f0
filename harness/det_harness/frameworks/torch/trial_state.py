"""The state of a PyTorch trial in a checkpoint's folder, complete enough for a bit-equal continuation.

``state_dict.pth``
    Models, optimizers, what has changed of them (see ``changed``), and gradients that are being aggregated; loads with
    ``torch.load(..., weights_only=True)``.
``objects.pkl``
    What users' modules or optimizers keep that such a file cannot hold; only if there is any.
``schedulers.*``, ``scalers.*``, ``callbacks.*``, ``reducers.*``
    See ``state_files``.
``heap.bin``
    What a loop, or the functions of a call, have changed.
``rng.npz``, ``state.json``
    Random number generators; the schedule, the position in the data, and the checkpoint's uuid.
``sharded/``
    Of a trial whose models are sharded: their tensors, and those of optimizers and gradients.
``ranks/<rank>/``
    Of a trial on several slots: what the other ranks have of their own (see `save_own`), in the same files.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from det_harness.frameworks.torch import changed, copies, nested, sharded_state
from det_harness.frameworks.torch.host_copy import HostMemory
from det_harness.trial import after_training, heap_file, rng, state_files
from det_harness.trial.throttle import Throttle
from det_native.errors import CheckpointError
from det_native.heap.kinds.torch_ import array_of
from det_native.pytorch import PyTorchCallback, PyTorchTrialContext
from det_native.pytorch.native_run import PyTorchRunContext

logger = logging.getLogger("det_harness")

# In a state: what a loop, or the functions of a call, have changed.
CHANGES = "changes"
_WEIGHTS = "state_dict.pth"
_OBJECTS = "objects.pkl"
_REMADE = "make it as it was made then, or start from scratch"
_OTHER_BY_NOW = (
    "it is another one by now, of which load() makes copies. Make one with the layers of then, and give it to "
    "experiment.load_into(model, checkpoint=...)"
)
_FACTS = "state.json"
_FILES = {
    "schedulers": "lr_schedulers_state_dict",
    "scalers": "scalers_state_dict",
    "callbacks": "callbacks",
    "reducers": "reducers",
}
# What is equal on all ranks.
_TENSORS = ("models_state_dict", "optimizers_state_dict")
_COMMON = (
    *_TENSORS,
    "lr_schedulers_state_dict",
    "scalers_state_dict",
    "parameter_groups",
)
_OF_OBJECTS = (*_COMMON, "gradients", "module_settings")
_PLAIN = (bool, int, float, complex, str, bytes, type(None), torch.Tensor, torch.Size, torch.dtype, torch.device)


def collect(
    context: PyTorchTrialContext, callbacks: Mapping[str, PyTorchCallback], reducers: list[Any] | None = None
) -> dict[str, Any]:
    """Return the state of all of a trial's objects, tensors as they are.

    Parameters
    ----------
    reducers : list
        What the custom reducers have gathered in a training workload that is under way.
    """
    return {
        "models_state_dict": [model.state_dict() for model in context.models],
        "optimizers_state_dict": [optimizer.state_dict() for optimizer in context.optimizers],
        "gradients": [_gradients(model) for model in context.models],
        "lr_schedulers_state_dict": [scheduler.state_dict() for scheduler in context.lr_schedulers],
        "scalers_state_dict": [scaler.state_dict() for scaler in context.scalers],
        "callbacks": {name: callback.state_dict() for name, callback in callbacks.items()},
        "reducers": reducers or [],
        **changed.collect(context),
    }


def save(
    folder: Path, state: dict[str, Any], schedule: dict[str, Any], position: Any, memory: HostMemory
) -> Callable[[Throttle], None]:
    """Write everything into an empty folder, but the tensors: what is returned writes a copy of them, at any time.

    Parameters
    ----------
    state : dict
        From :func:`collect`, and whatever callbacks have put in.
    schedule : dict
        The schedule's snapshot.
    position : optional
        Place in the training data, where it cannot be told from the number of batches.
    memory : HostMemory
        Where the copy goes.
    """
    rest = _write_state(folder, state, memory)
    _write_facts(folder, {"schedule": schedule, "position": position})
    return rest


def digest(context: PyTorchTrialContext) -> bytes:
    """Return what tells two states of models and optimizers apart."""
    found: dict[str, Any] = {}
    state = {key: value for key, value in collect(context, {}).items() if key in _TENSORS}
    nested.split(state, lambda leaf: nested.TAKEN if isinstance(leaf, torch.Tensor) else leaf, found)
    tensors = (each.detach().cpu().contiguous().flatten() for each in found.values())
    return after_training.digest(array_of(each.view(torch.uint8)) for each in tensors)


def save_end(folder: Path, context: PyTorchTrialContext, changes: bytes) -> None:
    """Write what the end of a training has made of models, optimizers, schedulers and scalers into an empty folder.

    `changes` is empty where those of the checkpoint are the last.
    """
    state = {key: value for key, value in collect(context, {}).items() if key in _OF_OBJECTS}
    _write_state(folder, {**state, CHANGES: changes}, HostMemory())(Throttle())


def save_own(folder: Path, state: dict[str, Any]) -> None:
    """Write what a rank other than the first has of its own into an empty folder.

    Parameters
    ----------
    state : dict
        From :func:`collect`, and whatever callbacks have put in.
    """
    _write_state(folder, {key: value for key, value in state.items() if key not in _COMMON}, HostMemory())(Throttle())


def _write_state(folder: Path, state: dict[str, Any], memory: HostMemory) -> Callable[[Throttle], None]:
    state = dict(state)
    for name, key in _FILES.items():
        if key in state:
            state_files.dump(folder, name, state.pop(key), partial(_title, name))
    heap_file.write(folder, state.pop(CHANGES, b""))
    objects: dict[str, Any] = {}
    copied, lent = memory.copy(nested.split(state, _in_weights_file, objects))
    if objects:
        import cloudpickle

        (folder / _OBJECTS).write_bytes(cloudpickle.dumps(objects))
    rng.save(folder)

    def write_weights(throttle: Throttle) -> None:
        with _without_checksums(), (folder / _WEIGHTS).open("wb", buffering=0) as stream:
            torch.save(copied, throttle.file(stream))  # type: ignore[arg-type] # all that it needs of a file
        memory.give_back(lent)

    return write_weights


@contextmanager
def _without_checksums() -> Iterator[None]:
    """Let ``torch.save`` leave out its CRC-32 of every tensor, more than half of its time.

    The checkpoint's manifest has the file's SHA-256, and ``torch.load`` does not look at them. The setting is that of
    the whole process: a file that the user's code saves meanwhile, in the training thread, has none either, and loads
    as well.
    """
    computed = torch.serialization.get_crc32_options()
    torch.serialization.set_crc32_options(False)
    try:
        yield
    finally:
        torch.serialization.set_crc32_options(computed)


def _title(name: str, path: tuple[Any, ...]) -> str:
    """Return how the user calls a place in one of the states, the beginning of a sentence."""
    if name != "callbacks" or not path:
        return f"Something in the state of {name}"
    keys = "".join(f"[{key!r}]" for key in path[1:])
    return f"state_dict(){keys} of the callback '{path[0]}'"


def note_uuid(folder: Path, uuid: str) -> None:
    """Add the checkpoint's own name to what :func:`save` has written."""
    _write_facts(folder, {**load_facts(folder), "uuid": uuid})


def load_facts(folder: Path) -> dict[str, Any]:
    """Return ``schedule`` (its snapshot), ``position`` and ``uuid``."""
    facts: dict[str, Any] = json.loads((folder / _FACTS).read_text(encoding="utf-8"))
    return facts


def read(folder: Path) -> dict[str, Any]:
    """Return what :func:`collect` returned, and whatever callbacks have put in."""
    state = {**_read_weights(folder), CHANGES: heap_file.read_whole(folder)}
    for name, key in _FILES.items():
        if (folder / f"{name}.json").exists():
            state[key] = state_files.load(folder, name)
    return state


def restore(state: dict[str, Any], context: PyTorchTrialContext, callbacks: Mapping[str, PyTorchCallback]) -> None:
    """Put the state back into the trial's objects.

    Raises
    ------
    CheckpointError
        If models, optimizers or schedulers do not fit those of the checkpoint.
    """
    _load_objects(state, context)
    for model, gradients in zip(context.models, state["gradients"], strict=True):
        put_gradients(model, gradients)
    changed.put_back(context.models, state, context.as_wrapped)
    for name, saved in state["callbacks"].items():
        if name not in callbacks:
            logger.warning("The checkpoint has a state for the callback '%s', which is no longer there.", name)
            continue
        callbacks[name].load_state_dict(saved)


def wrapper_of(owner: str) -> str:
    """Return what wraps models: the constructor of a class, or the code before a call such as ``context.fit``."""
    return f"the program before {owner}()" if "." in owner else f"{owner}.__init__()"


def load_models(folder: Path, context: PyTorchTrialContext, *, optimizers: bool = False) -> None:
    """Put the weights back into the trial's models; and with `optimizers` their optimizers, schedules and scalers.

    Raises
    ------
    CheckpointError
        If they do not fit those of the checkpoint.
    """
    mesh = sharded_state.mesh_of(context.models)
    weights = after_training.weights_in(folder)
    if optimizers:
        state = read(weights)
        sharded_state.put_back(state, weights, mesh)
        changed.regroup(context.optimizers, state, context.models, context.as_wrapped)
        state["gradients"] = []
    else:
        state = {"models_state_dict": _read_models(weights, mesh), "optimizers_state_dict": [], "gradients": []}
    sharded_state.fit(state, context)
    _load_objects(state, context, models_only=not optimizers)


def loaded_copies(folder: Path, context: PyTorchTrialContext, owner: str) -> list[torch.nn.Module]:
    """Return the context's models as a checkpoint has them, in evaluation mode.

    They are copies: the models themselves may be the user's, trained further since. Those of a program that runs again
    for it are nobody's.

    Raises
    ------
    CheckpointError
        If the models do not fit those of the checkpoint, or cannot be copied.
    """
    replayed = isinstance(context, PyTorchRunContext) and context.role == "load"
    models = context.models if replayed else copies.copied(context.models)
    weights = after_training.weights_in(folder)
    state = _read_weights(weights)
    sharded_state.put_back(state, weights, only="models_state_dict")
    remedy = _REMADE if replayed else _OTHER_BY_NOW
    _load_each(owner, "model", models, state["models_state_dict"], remedy)
    changed.put_back(models, state, context.as_wrapped)
    for model in models:
        model.eval()
    return models


def _write_facts(folder: Path, facts: dict[str, Any]) -> None:
    (folder / _FACTS).write_text(json.dumps(facts), encoding="utf-8")


def _read_weights(folder: Path) -> dict[str, Any]:
    state: dict[str, Any] = torch.load(folder / _WEIGHTS, map_location="cpu", weights_only=True)
    if (folder / _OBJECTS).exists():
        import cloudpickle

        for path, value in cloudpickle.loads((folder / _OBJECTS).read_bytes()).items():
            nested.put(state, path, value)
    return state


def _read_models(folder: Path, mesh: Any = None) -> list[Any]:
    """Return the states of the models, whole, or sharded over a mesh."""
    state = _read_weights(folder)
    sharded_state.put_back(state, folder, mesh, only="models_state_dict")
    models: list[Any] = state["models_state_dict"]
    return models


def _gradients(model: torch.nn.Module) -> dict[str, torch.Tensor]:
    """Return gradients that the next batch will add to: of an aggregation under way, or kept by the user's code."""
    return {name: value.grad.detach() for name, value in model.named_parameters() if value.grad is not None}


def put_gradients(model: torch.nn.Module, gradients: dict[str, torch.Tensor]) -> None:
    """Give parameters the gradients of a checkpoint; those that it lacks have none."""
    for name, parameter in model.named_parameters():
        saved = gradients.get(name)
        parameter.grad = None if saved is None else saved.to(parameter.device)


def _load_objects(state: dict[str, Any], context: PyTorchTrialContext, *, models_only: bool = False) -> None:
    owner = wrapper_of(context.owner)
    _load_each(owner, "model", context.models, state["models_state_dict"])
    if models_only:
        return
    _load_each(owner, "optimizer", context.optimizers, state["optimizers_state_dict"])
    _load_each(owner, "learning rate scheduler", context.lr_schedulers, state["lr_schedulers_state_dict"])
    _load_each(owner, "gradient scaler", context.scalers, state.get("scalers_state_dict") or [])


def _load_each(owner: str, kind: str, objects: list[Any], states: list[Any], remedy: str = _REMADE) -> None:
    if len(objects) != len(states):
        raise CheckpointError(
            f"The checkpoint has {len(states)} {kind}(s), {owner} wraps {len(objects)}: it was made by "
            "other code. Wrap what was wrapped then, or start from scratch."
        )
    for number, (target, state) in enumerate(zip(objects, states, strict=True)):
        try:
            target.load_state_dict(state)
        except (RuntimeError, ValueError, KeyError) as error:
            raise CheckpointError(
                f"The {kind} number {number + 1} ({type(target).__name__}) that {owner} wraps does not fit "
                f"the checkpoint; {remedy}: {error}"
            ) from error


def _in_weights_file(leaf: Any) -> Any:
    """Return what stands for a leaf in a file that is loaded with ``weights_only=True``, if it can be there."""
    if type(leaf) in _PLAIN or type(leaf) is torch.nn.Parameter:
        return leaf
    return leaf.item() if isinstance(leaf, np.generic) else nested.TAKEN
