"""The machines of a cluster, and what experiments wait for that it does not have yet."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from det_native.schema.bodies import Answer


class NodeInfo(Answer):
    """A machine of the cluster.

    Attributes
    ----------
    id : str
        What the engine calls it.
    name : str
        Its host name, made unique; slots are called ``<name>/<number>``.
    address : str
        IP address at which the others reach it.
    slots, free : int
        How many it has, and how many of them no other program uses.
    device : str
        What its slots are.
    accelerator : str
        Type of its GPUs (``H100``), empty where unknown or none.
    labels : dict of str to str
        Labels that it was started with.
    trouble : str
        Why no worker can run there, a sentence; empty if it can.
    """

    id: str
    name: str
    address: str = ""
    slots: int = 0
    free: int = 0
    device: Literal["cuda", "cpu"] = "cpu"
    accelerator: str = ""
    labels: dict[str, str] = Field(default_factory=dict)
    python: str = ""
    version: str = ""
    trouble: str = ""


class MachineModules(BaseModel):
    """What the Python of the workers of a machine has, of modules that were asked for.

    Attributes
    ----------
    name : str
        Of the machine.
    python, executable : str
        Version and place of the interpreter.
    modules : dict
        Those that it can import, each with the distributions that bring it and their versions.
    """

    model_config = ConfigDict(extra="ignore", frozen=True)

    name: str
    python: str
    executable: str
    modules: dict[str, dict[str, str]]


class SlotsWanted(BaseModel):
    """Slots that a trial waits for, all at once, because the cluster does not have them.

    Attributes
    ----------
    accelerator : str
        Type of the GPUs, ``cpu`` for processors, empty for any.
    node : str
        A label of machines, ``key=value``, or the name of a machine; empty for any.
    single_node : bool
        Whether one machine is to have them all.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    slots: int
    accelerator: str = ""
    node: str = ""
    single_node: bool = False
