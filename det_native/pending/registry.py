"""Trainings that were submitted and whose weights are not in this process yet.

A training lives as long as one of the objects that it trains: these hold it, and nothing else does. So a model that
nobody has any more is forgotten.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar

from det_native.client.arguments import Show
from det_native.client.handles import Experiment
from det_native.inspection.registry import adapter_of
from det_native.proof.content import content_of

#: Where an object that is trained holds its training.
HOLDER = "_det_native_pending"


@dataclass(eq=False)
class PendingTraining:
    """A training whose weights are not here yet.

    Attributes
    ----------
    experiment : Experiment
    call : FitCall or TorchCall
        What was submitted, with the objects that are trained.
    show : {"view", "bar", "none"}
        What is shown while it is waited for.
    execution : int or None
        Index of the execution of the notebook that made the call.
    content : str
        What the weights were when it was submitted.
    created : str
        When the experiment was created: a master of an emptied home gives its number to another one.
    loop : CarriedNames, optional
        What the user's own loop, or the functions and callbacks of the call, lead to, as it was then.
    read : set of str
        Names that code reads which has waited for it.
    counted : bool
        Whether names that its code changes have come home.
    """

    #: What looks at a model's content goes no further.
    _det_known_by_identity: ClassVar[bool] = True

    experiment: Experiment
    call: Any
    show: Show = "view"
    execution: int | None = None
    content: str = ""
    created: str = ""
    loop: Any = None
    read: set[str] = field(default_factory=set)
    counted: bool = False
    _changed: frozenset[int] | None = None

    def objects(self) -> frozenset[int]:
        """Return identities of all that the training changes, and where the numbers of tensors lie."""
        if self._changed is None:
            self._changed = frozenset() if self.loop is None else self.loop.may_change()
        return self._changed.union(_places(self.call.trained_parts))

    def renewed(self) -> frozenset[int]:
        """Return identities of those of the objects with which another call begins anew."""
        found: frozenset[int] = getattr(self.loop, "renewed", frozenset())
        return found

    def awaited(self) -> frozenset[str]:
        """Return the names of the notebook that its loop sets, but for those that the user has bound since."""
        found: frozenset[str] = frozenset() if self.loop is None else self.loop.awaited("__main__")
        return found

    def is_overwritten(self) -> bool:
        """Whether the weights are others than those that were submitted: the user has set them since."""
        return bool(self.content) and self.content != content_of_weights(self.call)

    def __deepcopy__(self, memo: object) -> PendingTraining:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return type(None), ()


_known: list[weakref.ref[PendingTraining]] = []


def add(
    experiment: Experiment, call: Any, *, show: Show = "view", execution: int | None = None
) -> PendingTraining | None:
    """Note that a call was submitted; None if the call trains no objects of this process."""
    if not getattr(call, "trained_parts", ()):
        return None
    training = PendingTraining(experiment, call, show, execution, content_of_weights(call))
    training.loop = getattr(call, "names", None)
    if training.loop is not None:
        for other in pending():
            if other.loop is not None:
                other.loop.give_up(training.awaited())
    for holder in _holders(call):
        holder[HOLDER] = training
    _known.append(weakref.ref(training, _known.remove))
    return training


def pending() -> list[PendingTraining]:
    """Return the trainings whose weights are not here yet, oldest first."""
    if not _known:
        return []
    return [training for reference in list(_known) if (training := reference()) is not None]


def end(training: PendingTraining) -> None:
    """Let the objects of a training be what they are from now on."""
    for holder in _holders(training.call):
        if holder.get(HOLDER) is training:
            del holder[HOLDER]
    if training.loop is not None:
        training.loop = training.call.names = None
    _known[:] = [reference for reference in _known if reference() not in (training, None)]


def content_of_weights(call: Any) -> str:
    """Return a fingerprint of the weights of a call's models; empty if they cannot be read."""
    try:
        weights = [adapter.weights(model) for model in call.models if (adapter := adapter_of(type(model)))]
        return content_of(weights).exact
    except Exception:  # noqa: BLE001 (models of users may raise anything when they are asked)
        return ""


def _holders(call: Any) -> Iterator[dict[str, Any]]:
    """Yield the attributes of each object that is trained."""
    for part in _with_parts(call.trained_parts):
        attributes = getattr(part, "__dict__", None)
        if isinstance(attributes, dict):
            yield attributes


def _with_parts(objects: Iterable[Any]) -> Iterator[Any]:
    for one in objects:
        yield one
        adapter = adapter_of(type(one))
        if adapter is not None:
            yield from adapter.shared_parts(one)


def _places(objects: Iterable[Any]) -> Iterator[int]:
    several = list(objects)
    for part in _with_parts(several):
        yield id(part)
    for one in several:
        adapter = adapter_of(type(one))
        tensors = [*(adapter.weights(one) or ()), *adapter.shared_parts(one)] if adapter is not None else []
        for tensor in tensors:
            of_tensor = adapter_of(type(tensor))
            address = None if of_tensor is None else of_tensor.address(tensor)
            if address:  # 0 is where tensors without numbers lie
                yield address
