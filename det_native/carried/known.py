"""What a PyTorch trial keeps itself, by keys that are the same in every process: a loop's names only refer to it."""

from __future__ import annotations

from typing import Any


def known_of(context: Any) -> dict[Any, Any]:
    """Return the wrapped objects of a context, and the parts of its models, by key.

    Parameters
    ----------
    context : PyTorchTrialContext
    """
    found: dict[Any, Any] = {("context",): context}
    state = getattr(context, "state", None)
    if state is not None:
        found["state",] = state
    for number, model in enumerate(context.models):
        for kind, parts in (
            ("module", model.named_modules()),
            ("parameter", model.named_parameters()),
            ("buffer", model.named_buffers()),
        ):
            for name, part in parts:
                found.setdefault((number, kind, name), part)
    for number, loader in enumerate(getattr(context, "loaders", ())):
        found["loader", number] = loader
        found.setdefault(("loader", number, "inside"), loader.plain)
    for kind in ("optimizers", "lr_schedulers", "scalers"):
        for number, one in enumerate(getattr(context, kind)):
            found[kind, number] = one
            inner = getattr(one, "scheduler", None)
            if inner is not None:
                found[kind, number, "inside"] = inner
    return found
