"""A run whose worker lives."""

from __future__ import annotations

from dataclasses import dataclass, field

from det_native.schema.kernel_runs import KernelProcess
from det_native.schema.trial_names import trial_name


@dataclass
class Active:
    """A run whose worker lives, as far as the launcher knows; it is killed once a time of `..._until` has come.

    `ending` says that it was asked to checkpoint and end, `kernel` is the process of the user's that trains, if no
    worker does: it holds no slot, and is never killed.
    """

    run_id: str
    trial_id: int
    experiment_id: int
    trial_number: int
    slots: tuple[str, ...]
    log_offsets: list[int]
    kernel: KernelProcess | None = None
    killed: bool = False
    hung: bool = False
    ending: bool = False
    linger_until: float = field(default=float("inf"))
    pause_until: float = field(default=float("inf"))

    @property
    def trial_name(self) -> str:
        """What people call its trial: ``7.2``."""
        return trial_name(self.experiment_id, self.trial_number)

    @property
    def leaving(self) -> bool:
        """Whether its slots will be free soon."""
        return self.ending or self.killed or self.hung or self.linger_until != float("inf")

    @property
    def ranks(self) -> int:
        """How many processes it has."""
        return len(self.log_offsets)
