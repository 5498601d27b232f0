"""Copies of models that ``copy.deepcopy`` refuses: what can be copied is, what cannot is shared.

A tensor that was computed (a module's last output, the weight of the older ``weight_norm``) is copied without its
graph. An object that cannot say what it is made of (a lock, an open file, a module of Python), or has such a part and
nothing of the model, is the same one in the copy. All else is as ``copy.deepcopy`` makes it.
"""

from __future__ import annotations

import copy
import copyreg
import types
from collections.abc import Callable, Collection, Iterable
from typing import Any

import torch

from det_native.errors import CheckpointError

_ATOMS = (type(None), bool, int, float, complex, str, bytes, type(...), torch.dtype, torch.device, torch.Size)


def copied(models: list[torch.nn.Module]) -> list[torch.nn.Module]:
    """Return copies of models, which share no parameter or buffer with them.

    Raises
    ------
    CheckpointError
        If the copy of a model would share its weights.
    """
    made: list[torch.nn.Module] = ObjectCopy().of(models)
    originals = {id(tensor) for model in models for tensor in (*model.parameters(), *model.buffers())}
    for model in made:
        for name, tensor in (*model.named_parameters(), *model.named_buffers()):
            if id(tensor) in originals:
                raise CheckpointError(
                    f"The {type(model).__name__} cannot be copied to load a checkpoint, as its {name} is in an object "
                    "that cannot be: load it in another process, with det.attach(...), which makes the models again."
                )
    return made


class ObjectCopy:
    """One copy: what is in its objects twice is copied once."""

    def __init__(self) -> None:
        self._memo: dict[int, Any] = {}
        self._alive: list[Any] = []  # so that no other object gets the id of one in the memo

    def of(self, value: Any) -> Any:
        """Return the copy of a value."""
        if type(value) in _ATOMS:
            return value
        if id(value) in self._memo:
            return self._memo[id(value)]
        self._alive.append(value)
        self._memo[id(value)] = made = self._made(value)
        return made

    def definition(self, value: Any) -> Any:
        """Return what the copy has in place of a class or a function: the same one."""
        return value

    def tensor(self, value: torch.Tensor) -> torch.Tensor:
        """Return the copy of a tensor."""
        if not value.is_leaf:
            return value.detach().clone()
        made: torch.Tensor = copy.deepcopy(value, self._memo)
        return made

    def _made(self, value: Any) -> Any:
        kind = type(value)
        if isinstance(value, type | types.FunctionType):
            return self.definition(value)
        if isinstance(value, torch.Tensor):
            return self.tensor(value)
        if kind is tuple:
            parts = [self.of(part) for part in value]
            return self._memo.get(id(value), tuple(parts))  # made meanwhile, where it is in itself
        if kind is list:
            return self._filled(value, [], lambda made: made.extend(self.of(part) for part in value))
        if kind is dict:
            return self._filled(
                value, {}, lambda made: made.update((self.of(key), self.of(part)) for key, part in value.items())
            )
        if kind is types.MethodType:
            return types.MethodType(self.of(value.__func__), self.of(value.__self__))
        return self._object(value)

    def _filled(self, value: Any, made: Any, fill: Callable[[Any], None]) -> Any:
        self._memo[id(value)] = made
        fill(made)
        return made

    def _object(self, value: Any) -> Any:
        kind = type(value)
        own = getattr(kind, "__deepcopy__", None)
        if self.definition(kind) is kind and own is not None:
            memo = dict(self._memo)
            try:
                return own(value, self._memo)
            except Exception:  # noqa: BLE001 (the user's class may raise anything)
                self._memo = memo
        if not isinstance(value, torch.nn.Module | Collection) and _is_outside(value):
            return value
        try:
            parts = reduced(value)
        except Exception:  # noqa: BLE001 (likewise)
            return self._by_attributes(value) if isinstance(value, torch.nn.Module) else value
        return value if isinstance(parts, str) else self._rebuilt(value, *parts)

    def _by_attributes(self, value: torch.nn.Module) -> torch.nn.Module:
        made: torch.nn.Module = type(value).__new__(self.definition(type(value)))
        self._memo[id(value)] = made
        vars(made).update(self.of(dict(vars(value))))
        return made

    def _rebuilt(
        self,
        value: Any,
        make: Callable[..., Any],
        arguments: tuple[Any, ...],
        state: Any = None,
        items: Iterable[Any] | None = None,
        pairs: Iterable[tuple[Any, Any]] | None = None,
        set_state: Callable[[Any, Any], Any] | None = None,
    ) -> Any:
        """Make an object of what its ``__reduce_ex__`` has given."""
        maker, given = self.of(make), [self.of(argument) for argument in arguments]
        try:
            made = maker(*given)
        except Exception:  # noqa: BLE001 (likewise)
            return value  # as if it could not say what it is made of
        self._memo[id(value)] = made
        if state is not None:
            _set_state(made, self.of(state), set_state)
        for item in items or ():
            made.append(self.of(item))
        for key, part in pairs or ():
            made[self.of(key)] = self.of(part)
        return made


def reduced(value: Any) -> Any:
    """Return what an object says it is made of; of one that all the world knows by a name, this."""
    reduce = copyreg.dispatch_table.get(type(value))
    return reduce(value) if reduce is not None else value.__reduce_ex__(4)


def _is_outside(value: Any) -> bool:
    """Return whether an object has parts that cannot be copied, and none that are of a model."""
    refused, ahead, seen, alive = False, [value], set[int](), []
    while ahead:
        part = ahead.pop()
        if id(part) in seen or type(part) in _ATOMS or isinstance(part, type | types.FunctionType):
            continue
        if isinstance(part, torch.nn.Module | torch.Tensor):
            return False
        seen.add(id(part))
        alive.append(part)
        if type(part) in (list, tuple):
            ahead += part
        elif type(part) is dict:
            ahead += [*part, *part.values()]
        elif type(part) is types.MethodType:
            ahead.append(part.__self__)
        else:
            try:
                found = reduced(part)
                ahead += [] if isinstance(found, str) else [*found[:3], *(list(more or ()) for more in found[3:5])]
            except Exception:  # noqa: BLE001 (the user's class may raise anything)
                refused = True
    return refused


def _set_state(made: Any, state: Any, set_state: Callable[[Any, Any], Any] | None) -> None:
    if set_state is not None:
        set_state(made, state)
    elif hasattr(made, "__setstate__"):
        made.__setstate__(state)
    else:
        attributes, slots = state if isinstance(state, tuple) and len(state) == 2 else (state, None)
        vars(made).update(attributes or {})
        for name, part in (slots or {}).items():
            setattr(made, name, part)
