"""What a PyTorch trial keeps itself, by keys that are the same in every process: a loop's names only refer to it."""

from __future__ import annotations

from typing import Any


def known_of(context: Any) -> dict[Any, Any]:
    """Return the wrapped objects of a context, and the parts of its models, by key.

    Parameters
    ----------
    context : PyTorchTrialContext
    """
    objects: dict[Any, Any] = {("context",): context}
    state = getattr(context, "state", None)
    if state is not None:
        objects["state",] = state
    for number, model in enumerate(context.models):
        for kind, parts in (
            ("module", model.named_modules()),
            ("parameter", model.named_parameters()),
            ("buffer", model.named_buffers()),
        ):
            for name, part in parts:
                objects.setdefault((number, kind, name), part)
    for number, loader in enumerate(getattr(context, "loaders", ())):
        objects["loader", number] = loader
        objects.setdefault(("loader", number, "inside"), loader.plain)
    for kind in ("optimizers", "lr_schedulers", "scalers"):
        for number, one in enumerate(getattr(context, kind)):
            objects[kind, number] = one
            inner = getattr(one, "scheduler", None)
            if inner is not None:
                objects[kind, number, "inside"] = inner
    return objects
