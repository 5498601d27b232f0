"""The machines of a cluster, from what Ray tells of them: their names, and how many slots they have. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from det_native.errors import ArgumentError
from det_native.schema.cluster import NodeInfo

_SETTING = re.compile(r"(?:(cpu|cuda):)?(\d+)")
#: How the resource begins that tells the type of the GPUs of a machine.
ACCELERATOR = "accelerator_type:"
_HEAD = "node:__internal_head__"
# Autoscalers (KubeRay's, those of clouds) give it to the machines that they start.
_GROUP = "ray.io/node-group"


@dataclass(frozen=True)
class SlotRule:
    """How many slots a machine has, by the setting ``slots``; `count` is None for as many as there are."""

    device: Literal["cpu", "cuda"] | None = None
    count: int | None = None

    @classmethod
    def parse(cls, setting: str | None) -> SlotRule:
        """Read ``4``, ``cpu:4`` or ``cuda:4``.

        Raises
        ------
        ArgumentError
            If it is none of these.
        """
        if setting is None or setting.strip().lower() == "auto":
            return cls()
        match = _SETTING.fullmatch(setting.strip().lower())
        if match is None or int(match[2]) == 0:
            raise ArgumentError(f'slots: {setting!r} is no number of slots; write "4", "cpu:4" or "cuda:4"')
        return cls("cpu" if match[1] == "cpu" else "cuda" if match[1] else None, int(match[2]))

    def share(self, cpus: float, gpus: float) -> tuple[Literal["cpu", "cuda"], int, float]:
        """Return the device of a machine's slots, how many there are, and what each takes of its resource."""
        if gpus >= 1 and self.device != "cpu":
            return "cuda", min(int(gpus), self.count or int(gpus)), 1.0
        if self.device == "cuda" or cpus <= 0:
            return "cpu", 0, 1.0
        count = int(cpus) if self.count is None else self.count
        # Ray counts in ten-thousandths: rounded down, so that all of them fit.
        return "cpu", count, int(cpus / count * 10_000) / 10_000 if count else 1.0


@dataclass(frozen=True)
class Machine:
    """A machine as Ray tells of it.

    Attributes
    ----------
    info : NodeInfo
        Without what only an agent knows.
    share : float
        What a slot takes of CPU or GPU.
    total : float
        What the machine has of it.
    head : bool
        Whether the cluster's head runs there.
    threads : int
        With how many a slot computes: its part of the CPUs that Ray has there, 0 where Ray has none.
    seconds : float or None
        How long it still is there, if it is being drained.
    """

    info: NodeInfo
    share: float
    total: float
    head: bool
    threads: int = 0
    seconds: float | None = None

    @property
    def may_be_given_back(self) -> bool:
        """Whether an autoscaler has started it, and takes it away once nothing of Ray is on it."""
        return not self.head and bool(self.info.labels.get(_GROUP))

    @property
    def resource(self) -> str:
        """What Ray calls the resource of its slots."""
        return "GPU" if self.info.device == "cuda" else "CPU"

    @property
    def portion(self) -> float:
        """What each slot would take if all of them together took the whole machine."""
        return int(self.total / self.info.slots * 10_000) / 10_000


class Machines:
    """Keeps the machines' names: they stay, and another machine gets one only once none that lives has it.

    So a machine that was started again, which Ray takes for another one, is called as before.

    Parameters
    ----------
    names : mapping
        Those of before, by id.
    """

    def __init__(self, rule: SlotRule, names: Mapping[str, str]) -> None:
        self.rule = rule
        self._names = dict(names)
        #: Ids of the machines of before.
        self.of_before = frozenset(names)

    def read(
        self,
        nodes: Sequence[Mapping[str, Any]],
        available: Mapping[str, Mapping[str, float]],
        own: Mapping[str, Mapping[str, float]],
        draining: Mapping[str, float],
    ) -> dict[str, Machine]:
        """Return the machines that live, by id.

        Parameters
        ----------
        nodes : sequence of mapping
            As ``ray.nodes()`` has them.
        available : mapping
            What is free of the resources of each node.
        own : mapping
            What our own runs hold of the resources of each node.
        draining : mapping
            The nodes that are being drained, and the seconds that are left to each.
        """
        alive = sorted((node for node in nodes if node["Alive"]), key=lambda node: str(node["NodeID"]))
        self._call({str(node["NodeID"]): str(node["NodeManagerHostname"]) for node in alive})
        return {
            node["NodeID"]: replace(
                self._machine(node, available.get(node["NodeID"]), own.get(node["NodeID"], {})),
                seconds=draining.get(node["NodeID"]),
            )
            for node in alive
        }

    def name(self, node_id: str) -> str:
        """Return the name of a machine that lives or has lived."""
        return self._names.get(node_id, node_id[:8])

    def _machine(
        self, node: Mapping[str, Any], available: Mapping[str, float] | None, own: Mapping[str, float]
    ) -> Machine:
        node_id, total = str(node["NodeID"]), node["Resources"]
        device, slots, share = self.rule.share(total.get("CPU", 0.0), total.get("GPU", 0.0))
        resource = "GPU" if device == "cuda" else "CPU"
        free = slots
        if available is not None:
            held = max(total.get(resource, 0.0) - available.get(resource, 0.0) - own.get(resource, 0.0), 0.0)
            free = min(slots, int((total.get(resource, 0.0) - held + 1e-3) / share))
        kinds = [name.removeprefix(ACCELERATOR) for name in total if name.startswith(ACCELERATOR)]
        labels = {name: text for name, text in node.get("Labels", {}).items() if name != "ray.io/node-id"}
        info = NodeInfo(
            id=node_id,
            name=self._names[node_id],
            address=str(node["NodeManagerAddress"]),
            slots=slots,
            free=free,
            device=device,
            accelerator=next(iter(kinds), labels.get("ray.io/accelerator-type", "")),
            labels=labels,
        )
        cpus = total.get("CPU", 0.0)
        threads = max(1, int(cpus / slots)) if cpus and slots else 0
        return Machine(info, share, total.get(resource, 0.0), _HEAD in total, threads)

    def _call(self, hosts: Mapping[str, str]) -> None:
        """Give names to the machines that live and have none yet, or whose name is another's by now."""
        taken: set[str] = set()
        new = []
        for node_id in hosts:
            name = self._names.get(node_id)
            if name is None or name in taken:
                new.append(node_id)
            else:
                taken.add(name)
        for node_id in new:
            host = hosts[node_id].partition(".")[0] or "node"
            numbered = (f"{host}-{number}" for number in range(2, len(taken) + 3))
            name = next(name for name in (host, *numbered) if name not in taken)
            self._names[node_id] = name
            taken.add(name)


def head_of(machines: Mapping[str, Machine]) -> str:
    """Return the id of the machine of the cluster's head, empty where there is none: a new one when it is restarted."""
    return next((node_id for node_id, machine in machines.items() if machine.head), "")


def without_slots(info: NodeInfo, trouble: str) -> NodeInfo:
    """Return a machine on which no worker can run, and why."""
    return replace_info(info, slots=0, free=0, trouble=trouble)


def replace_info(info: NodeInfo, **changes: Any) -> NodeInfo:
    """Return a machine with other values of some fields."""
    return info.model_copy(update=changes)


def steadied(before: Mapping[str, Machine], read: Mapping[str, Machine]) -> dict[str, Machine]:
    """Return machines of which fewer slots are free only where that was so at the look before, too.

    What Ray says of its resources and of our placement groups is not of the same moment.
    """
    return {
        node_id: replace(
            machine, info=replace_info(machine.info, free=max(machine.info.free, before[node_id].info.free))
        )
        if node_id in before and before[node_id].info.slots == machine.info.slots
        else machine
        for node_id, machine in read.items()
    }
