"""What an autoscaler is asked for, from what trials wait for and the machines that there are. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from ray.util.accelerators import accelerators

from det_native.master.launch.ray.bridge.nodes import ACCELERATOR, Machine, SlotRule
from det_native.schema.cluster import SlotsWanted

#: Of the resource that tells the type of its GPUs a machine has 1; whoever wants the type asks for a trace of it.
_TRACE = 0.001
#: The types that Ray knows by name.
_KNOWN = [text for name, text in vars(accelerators).items() if name.isupper() and isinstance(text, str)]


@dataclass(frozen=True)
class Demand:
    """What one machine must have: resources and labels. Ray calls it a bundle."""

    resources: dict[str, float]
    labels: dict[str, str] = field(default_factory=dict)


def demands_of(wanted: Iterable[SlotsWanted], machines: Iterable[Machine], rule: SlotRule) -> list[Demand]:
    """Return what to ask an autoscaler for.

    A slot is as much of a machine as it is on the machines that there are: with two slots for each machine of 16
    processors, eight processors.

    Parameters
    ----------
    machines : iterable of Machine
        Those that there are.
    rule : SlotRule
        How many slots a machine has.
    """
    usable = [machine for machine in machines if machine.info.slots]
    return [demand for each in wanted for demand in _demands(each, usable, rule)]


def _demands(wanted: SlotsWanted, machines: list[Machine], rule: SlotRule) -> list[Demand]:
    accelerator = _as_ray_calls_it(wanted.accelerator, machines)
    resource = _resource(accelerator, machines, rule)
    amount = _amount(resource, accelerator, machines)
    traces = {ACCELERATOR + accelerator: _TRACE} if accelerator and resource == "GPU" else {}
    label, is_label, value = wanted.node.partition("=")
    labels = {label: value} if is_label else {}
    if wanted.single_node:
        return [Demand({resource: round(amount * wanted.slots, 4), **traces}, labels)]
    return [Demand({resource: amount, **traces}, labels)] * wanted.slots


def _as_ray_calls_it(accelerator: str, machines: list[Machine]) -> str:
    """Return a type of GPUs in Ray's spelling, which an autoscaler compares letter by letter."""
    spellings = [*(machine.info.accelerator for machine in machines), *_KNOWN]
    return next((text for text in spellings if text.casefold() == accelerator.casefold()), accelerator)


def _resource(accelerator: str, machines: list[Machine], rule: SlotRule) -> str:
    """Return what Ray calls the resource of slots; of any kind, that of GPUs where some machine has them."""
    if accelerator:
        return "CPU" if accelerator.casefold() == "cpu" else "GPU"
    has_gpus = rule.device == "cuda" or any(machine.resource == "GPU" for machine in machines)
    return "GPU" if has_gpus else "CPU"


def _amount(resource: str, accelerator: str, machines: list[Machine]) -> float:
    """Return how much of its resource a slot takes.

    Where machines differ, as much as on the largest: of less, a machine would seem to have more slots than it gets, and
    too few machines would be started. The head is often of another kind, and no more of its kind are started.
    """
    same = [machine for machine in machines if machine.resource == resource]
    same = [machine for machine in same if machine.info.accelerator == accelerator] or same
    same = [machine for machine in same if not machine.head] or same
    return max((machine.portion for machine in same), default=1.0)
