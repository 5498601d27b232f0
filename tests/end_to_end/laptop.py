"""The side of a notebook whose master is on a machine that is reached by SSH."""

from __future__ import annotations

from pathlib import Path

from faults import Cluster
from ssh_machine import SshMachine

from det_native.client.connect import connect
from det_native.client.handles import Experiment
from det_native.client.http_source import HttpSource


class Laptop(Cluster):
    """The side of the notebook: a home in which no master runs, and the way to the machine.

    Parameters
    ----------
    folder : Path
    machine : SshMachine
    address : str, optional
        Another of its masters than that of its home.
    """

    def __init__(self, folder: Path, machine: SshMachine, address: str | None = None) -> None:
        super().__init__(folder)
        self.machine = machine
        self.address = address or machine.address

    @property
    def environment(self) -> dict[str, str]:
        """Variables of kernel and command."""
        return super().environment | self.machine.variables | {"DET_MASTER": self.address}

    def attach(self, number: int) -> Experiment:
        """Return the handle of an experiment there; this process reaches the machine as the kernel does."""
        return Experiment(HttpSource(connect(self.address, start=False)), number)
