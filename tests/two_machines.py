"""Two machines for the processes of a trial: networks of their own that a cable connects, and folders of their own.

A thread copies the files that processes of a run share, as a launcher does. It needs rights that not every machine
gives to tests.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from det_native.schema.job import Gang
from det_native.schema.ranks import RENDEZVOUS_NAME, is_shared, rank_folder

_NETWORK, _HOST_NAME = 0x40000000, 0x04000000
_COPIED_EVERY = 0.05


@dataclass
class Machine:
    """One of them.

    Attributes
    ----------
    network : str
        Name of its network, below ``/run/netns``.
    address : str
    folder : Path
        That of the run.
    """

    network: str
    address: str
    folder: Path


@dataclass
class TwoMachines:
    """Both of them, while the block of `two_machines` lasts."""

    machines: list[Machine]
    _seen: dict[Path, bytes] = field(default_factory=dict)

    def gangs(self, on: Sequence[int]) -> list[dict[str, Any]]:
        """Return the gang of each process, as JSON; `on` says on which machine it is, by rank."""
        sizes = [list(on).count(number) for number in range(len(self.machines))]
        return [
            Gang(
                rank=rank,
                size=len(on),
                local_rank=list(on[:rank]).count(machine),
                local_size=sizes[machine],
                cross_rank=machine,
                cross_size=len(self.machines),
                local_sizes=sizes,
                rendezvous=str(self.machines[machine].folder / RENDEZVOUS_NAME),
                address=self.machines[machine].address,
            ).model_dump(mode="json")
            for rank, machine in enumerate(on)
        ]

    def folder_of(self, rank: int, on: Sequence[int]) -> Path:
        """Return the folder of a process, made."""
        folder = rank_folder(self.machines[on[rank]].folder, rank)
        folder.mkdir(exist_ok=True)
        return folder

    def copy(self) -> None:
        """Bring what is new among the shared files of a machine to the other."""
        for machine, other in (self.machines, self.machines[::-1]):
            for path in machine.folder.rglob("*"):
                name = path.relative_to(machine.folder)
                if not is_shared(name.as_posix()):
                    continue
                content, there = path.read_bytes(), other.folder / name
                if self._seen.get(path) != content:
                    self._seen[path] = self._seen[there] = content
                    there.parent.mkdir(exist_ok=True)
                    partial = there.with_name(f".{there.name}.copied")
                    partial.write_bytes(content)
                    partial.replace(there)


@contextmanager
def two_machines(folder: Path) -> Iterator[TwoMachines]:
    """Have two machines, each with a folder in this one, for the block; the test is skipped where it is not allowed."""
    name = f"det{os.getpid()}"
    made = [Machine(f"{name}{end}", f"10.77.0.{number}", folder / end) for number, end in enumerate("ab", 1)]
    for machine in made:
        machine.folder.mkdir()
    over, both = threading.Event(), TwoMachines(made)

    def copy_often() -> None:
        while not over.wait(_COPIED_EVERY):
            both.copy()

    copier = threading.Thread(target=copy_often, name="copies-shared-files")
    try:
        _connect(made)
        copier.start()
        yield both
    finally:
        over.set()
        if copier.ident is not None:
            copier.join()
        for machine in made:
            subprocess.run(["ip", "netns", "del", machine.network], capture_output=True, check=False)


def _connect(machines: list[Machine]) -> None:
    if shutil.which("ip") is None:
        pytest.skip("There is no program ip (iproute2), which makes networks.")
    commands = [f"netns add {machine.network}" for machine in machines]
    first, second = machines
    commands.append(f"link add wire netns {first.network} type veth peer name wire netns {second.network}")
    for machine in machines:
        commands += [
            f"-n {machine.network} address add {machine.address}/24 dev wire",
            f"-n {machine.network} link set lo up",
            f"-n {machine.network} link set wire up",
        ]
    for command in commands:
        done = subprocess.run(["ip", *command.split()], capture_output=True, text=True, check=False)
        if done.returncode:
            pytest.skip(f"Tests may not make networks here: ip {command}: {done.stderr.strip()}")


def enter(network: str, name: str) -> None:
    """Have this process, which has one thread, be on a machine: in its network, and with its address as its name."""
    library = ctypes.CDLL(None, use_errno=True)
    descriptor = os.open(f"/run/netns/{network}", os.O_RDONLY)
    with suppress(OSError):
        _checked(library.setns(descriptor, _NETWORK))
        os.close(descriptor)
        _checked(library.unshare(_HOST_NAME))
        _checked(library.sethostname(name.encode(), len(name)))
        return
    raise OSError(ctypes.get_errno(), f"This process cannot enter {network}.")


def _checked(result: int) -> None:
    if result != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
