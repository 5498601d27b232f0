"""What the launcher in the master and its bridge tell each other: a line of JSON each, over the bridge's own pipes."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from det_native.schema.cluster import MachineModules, NodeInfo, SlotsWanted
from det_native.schema.job import CheckJob, TrialJob


class _Message(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Worker(_Message):
    """A ``WorkerKind``, as it travels."""

    framework: str
    executable: str = ""
    fingerprint: str = ""
    packages: tuple[str, ...] = ()


class StartRun(_Message):
    """Start the processes of a run; `slots` are names such as ``<node>/<number>``, empty for a check."""

    kind: Literal["start"] = "start"
    run_id: str
    job: Annotated[TrialJob | CheckJob, Field(discriminator="kind")]
    worker: Worker
    ranks: int = 1
    slots: list[str] = Field(default_factory=list)


class AdoptRun(_Message):
    """Find the processes of a run that an earlier bridge has started; ``Ended`` comes if there are none."""

    kind: Literal["adopt"] = "adopt"
    run_id: str
    handle: dict[str, Any]


class AllKnown(_Message):
    """All runs of an earlier bridge have been named: what others hold in the cluster under our name is given back."""

    kind: Literal["known"] = "known"


class KillRun(_Message):
    """End the processes of a run: SIGTERM now, SIGKILL after `grace` seconds."""

    kind: Literal["kill"] = "kill"
    run_id: str
    grace: float = 0.0


class AskForStacks(_Message):
    """Have the processes of a run write the stack of every thread to their output."""

    kind: Literal["stacks"] = "stacks"
    run_id: str


class LookForStopped(_Message):
    """Ask which processes of a run a signal has stopped; ``Stopped`` answers."""

    kind: Literal["look"] = "look"
    run_id: str


class Warm(_Message):
    """Have standbys ready on the machines soon."""

    kind: Literal["warm"] = "warm"
    worker: Worker


class Want(_Message):
    """What waits for more slots than there are."""

    kind: Literal["want"] = "want"
    wanted: list[SlotsWanted]


class LookForModules(_Message):
    """Ask which modules the machines can import; ``Modules`` answers under the same number.

    `executable` is the interpreter of the notebook, which workers take where a machine has it too.
    """

    kind: Literal["modules"] = "modules"
    number: int
    executable: str
    names: list[str]


class Close(_Message):
    """End; the workers live on unless `kill_workers`."""

    kind: Literal["close"] = "close"
    kill_workers: bool = False


Command = (
    StartRun | AdoptRun | AllKnown | KillRun | AskForStacks | LookForStopped | Warm | Want | LookForModules | Close
)
COMMAND: TypeAdapter[Command] = TypeAdapter(Annotated[Command, Field(discriminator="kind")])


class Connected(_Message):
    """The bridge has reached the cluster; `dashboard` is an address for browsers, empty where there is none."""

    kind: Literal["connected"] = "connected"
    address: str
    ray: str
    dashboard: str = ""


class Lost(_Message):
    """The cluster cannot be used now, and why, as a sentence; `for_good` if trying again changes nothing."""

    kind: Literal["lost"] = "lost"
    why: str
    for_good: bool = False


class Nodes(_Message):
    """The machines as they are now; sent when something about them has changed.

    `others` are the other masters that use the cluster, each as ``user on host, home /path``.
    """

    kind: Literal["nodes"] = "nodes"
    nodes: list[NodeInfo]
    others: list[str] = Field(default_factory=list)


class Modules(_Message):
    """What the machines that can run workers have of the modules that were asked for."""

    kind: Literal["modules"] = "modules"
    number: int
    machines: list[MachineModules]


class RankPlace(_Message):
    """Where one process of a run is."""

    rank: int
    node: str
    name: str
    address: str
    pid: int


class Started(_Message):
    """All processes of a run have their job; `standby` says how warm they were."""

    kind: Literal["started"] = "started"
    run_id: str
    places: list[RankPlace]
    standby: str = ""


class Waiting(_Message):
    """What a run waits for before it can begin, in words; empty once it waits for nothing."""

    kind: Literal["waiting"] = "waiting"
    run_id: str
    why: str


class Ended(_Message):
    """All processes of a run are gone, and what they left is in the folder of the run here: the fields of ``Exit``."""

    kind: Literal["ended"] = "ended"
    run_id: str
    code: int | None
    detail: str = ""
    memory: str = ""
    begun: bool = True
    interrupted: str = ""


class Stopped(_Message):
    """The numbers of the processes of a run that a signal has stopped."""

    kind: Literal["stopped"] = "stopped"
    run_id: str
    pids: list[int]


class Standbys(_Message):
    """How many standbys of each framework are ready, on all machines together."""

    kind: Literal["standbys"] = "standbys"
    counts: dict[str, int]


class Alive(_Message):
    """The bridge works; it says so every few seconds once it has connected."""

    kind: Literal["alive"] = "alive"


Event = Connected | Lost | Nodes | Modules | Started | Waiting | Ended | Stopped | Standbys | Alive
EVENT: TypeAdapter[Event] = TypeAdapter(Annotated[Event, Field(discriminator="kind")])
