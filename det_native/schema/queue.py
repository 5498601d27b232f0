"""Body of ``GET /queue``: who trains, and who waits for what."""

from __future__ import annotations

from pydantic import Field

from det_native.schema.bodies import Answer
from det_native.schema.states import ExperimentState


class QueueEntry(Answer):
    """An experiment that has not ended.

    `priority` is the one that counts: lower comes first. `running` and `queued` count its trials, `held` has the slots
    of those that run. `waits_for` and `notice` are those of the experiment.
    """

    id: int
    name: str
    state: ExperimentState
    created: str
    started: str | None
    progress: float
    seconds_left: float | None
    waits_for: str = ""
    notice: str = ""
    priority: int
    weight: float
    max_slots: int | None
    slots_per_trial: int
    running: int
    queued: int
    held: list[str] = Field(default_factory=list)


class Queue(Answer):
    """Experiments in the order of the scheduler: those that hold slots, those that wait, those that are paused.

    By the policy ``priority`` the order can be changed by changing priorities; by ``fair_share`` priorities do not
    count. `more` counts experiments beyond the first ones, which are left out.
    """

    policy: str
    slots: int
    free: int
    entries: list[QueueEntry]
    more: int = 0
