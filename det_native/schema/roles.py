"""Processes of a trial that have roles (``distributed.strategy: tf_config``): who is who, by rank. Pure.

The ranks are numbered role by role, those first that take a slot: the chief is rank 0, then come the workers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

STRATEGY = "tf_config"

RoleName = Literal["chief", "master", "worker", "ps", "evaluator"]

#: In the order of ranks; those before have slots, those after have none.
WITH_SLOTS: tuple[RoleName, ...] = ("chief", "master", "worker")
NAMES: tuple[RoleName, ...] = get_args(RoleName)


@dataclass(frozen=True)
class Role:
    """What one process of a trial is.

    Attributes
    ----------
    name : str
        As ``TF_CONFIG`` has it.
    index : int
        Among those of the same name.
    """

    name: RoleName
    index: int

    @property
    def title(self) -> str:
        """``"chief"``, or ``"worker 1"`` where there can be several."""
        return self.name if self.name in ("chief", "master", "evaluator") else f"{self.name} {self.index}"

    @property
    def leads(self) -> bool:
        """Whether the trial is done when it is."""
        return self.name in ("chief", "master")

    @property
    def has_slot(self) -> bool:
        """Whether it trains, on a slot of the trial's."""
        return self.name in WITH_SLOTS


def roles_of(config: Mapping[str, Any]) -> tuple[Role, ...]:
    """Return the role of each process of a trial, by rank; nothing where processes have no roles.

    Parameters
    ----------
    config : mapping
        A valid experiment configuration, complete.
    """
    distributed = config.get("distributed") or {}
    if distributed.get("strategy") != STRATEGY:
        return ()
    counts: Mapping[str, int] = distributed.get("roles") or {}
    return tuple(Role(name, index) for name in NAMES for index in range(counts.get(name) or 0))


def role_title(config: Mapping[str, Any], rank: int | None) -> str | None:
    """Return the title of a rank's role; None where processes have no roles, and for no rank."""
    roles = roles_of(config)
    return roles[rank].title if rank is not None and rank < len(roles) else None


def slots_of(counts: Mapping[str, Any]) -> int:
    """Return the slots that a table of roles takes; what is no number is passed over."""
    numbers = [counts.get(name) for name in WITH_SLOTS]
    return sum(count for count in numbers if isinstance(count, int) and not isinstance(count, bool) and count > 0)


def processes_of(config: Mapping[str, Any], slots: int) -> int:
    """Return how many processes run a trial on so many slots.

    Each slot has one; where processes have roles, some have no slot; and one has all slots where the framework spreads
    the work (``resources.native_parallel``).
    """
    roles = roles_of(config)
    if roles:
        return len(roles)
    return 1 if (config.get("resources") or {}).get("native_parallel") else max(1, slots)


def with_slots_of_roles(raw: dict[str, Any]) -> dict[str, Any]:
    """Return a written configuration whose trials have the slots of its roles, where it does not say how many."""
    distributed, resources = raw.get("distributed"), raw.get("resources")
    if not isinstance(distributed, Mapping) or distributed.get("strategy") != STRATEGY:
        return raw
    roles = distributed.get("roles")
    said = isinstance(resources, Mapping) and resources.get("slots_per_trial") is not None
    if said or not isinstance(roles, Mapping) or not (resources is None or isinstance(resources, Mapping)):
        return raw
    return {**raw, "resources": {**(resources or {}), "slots_per_trial": max(1, slots_of(roles))}}
