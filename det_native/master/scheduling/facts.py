"""What the scheduler is told, and what it answers."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from det_native.master.scheduling.machines import ANYWHERE, Where

DEFAULT_PRIORITY = 42


class Policy(StrEnum):
    """By what experiments come before others: ``DET_SCHEDULER`` says it."""

    PRIORITY = "priority"
    FAIR_SHARE = "fair_share"


@dataclass(frozen=True, kw_only=True)
class Claim:
    """What an experiment may have.

    Attributes
    ----------
    priority : int or None
        Lower first; None is the default, 42.
    weight : float
        Its share among the others, above 0.
    max_slots : int or None
        Slots that it may hold at once.
    """

    priority: int | None = None
    weight: float = 1.0
    max_slots: int | None = None

    @property
    def level(self) -> int:
        """The priority that counts."""
        return DEFAULT_PRIORITY if self.priority is None else self.priority


@dataclass(frozen=True)
class Pending(Claim):
    """A trial that waits for slots.

    Attributes
    ----------
    slots : int
        Slots it needs, all at once; 0 for work that needs none.
    order : int
        Position in its experiment's queue; lower starts first.
    served : str
        When the experiment last got slots, as text that sorts by time; empty for never.
    where : Where
        Which slots it may have.
    """

    trial_id: int
    experiment_id: int
    slots: int
    order: int
    served: str = ""
    where: Where = ANYWHERE


@dataclass(frozen=True)
class Running(Claim):
    """A trial that holds slots.

    Attributes
    ----------
    started : str
        When, as text that sorts by time.
    ending : bool
        It was asked to checkpoint and end: its slots will be free soon.
    """

    trial_id: int
    experiment_id: int
    slot_ids: tuple[str, ...]
    started: str = ""
    ending: bool = False


@dataclass(frozen=True)
class Start:
    """Start this trial on these slots."""

    trial_id: int
    slot_ids: tuple[str, ...]


@dataclass(frozen=True)
class Preempt:
    """Have this trial checkpoint and end, and wait in the queue again.

    Attributes
    ----------
    experiment_id : int or None
        Whose trial gets the slots; None where its own experiment holds more than its `max_slots`.
    """

    trial_id: int
    experiment_id: int | None


Action = Start | Preempt
