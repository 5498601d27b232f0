"""The four verbs of a launcher: start, poll, kill, logs."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from det_native.schema.cluster import MachineModules, NodeInfo, SlotsWanted
from det_native.schema.job import CheckJob, TrialJob
from det_native.schema.rest import SlotInfo


@dataclass(frozen=True)
class WorkerKind:
    """What a warm standby must have: the interpreter that will run the bundle, and the framework imported.

    `executable` is an absolute path, or empty for the master's own interpreter. `fingerprint` keys the standbys
    (``Interpreter.fingerprint``). Of a kind with `packages`, which an environment of its own has beside what the
    interpreter has, there are no standbys.
    """

    framework: str
    executable: str = ""
    fingerprint: str = ""
    packages: tuple[str, ...] = ()


@dataclass(frozen=True)
class Exit:
    """All processes of a run are gone.

    `code` and `detail` are of the one that failed first, by itself. `code` is negative for a signal and None if the
    launcher was not its parent. `memory` says how much it had where the system has killed it for want of memory.
    `begun` is False for a run whose workers had not taken their job yet when the master ended, and they with it.
    `interrupted` says what has ended it where that has nothing to do with what it runs: "the machine a is being
    drained".
    """

    run_id: str
    code: int | None
    detail: str = ""
    memory: str = ""
    begun: bool = True
    interrupted: str = ""


@dataclass(frozen=True)
class Output:
    """New bytes of a worker's output; `offset` is where the next read starts, and `behind` what is left for it."""

    text: str
    offset: int
    behind: int = 0


class Launcher(Protocol):
    """Runs worker processes somewhere. All methods return quickly, are called from one thread, and never raise for a
    run that is already over.
    """

    def start(
        self, run_id: str, job: TrialJob | CheckJob, kind: WorkerKind, *, ranks: int = 1, slots: Sequence[str] = ()
    ) -> dict[str, Any]:
        """Start `ranks` workers on `job`; return a JSON-able handle from which ``adopt`` finds them again.

        `slots` are the slots that the scheduler has given to the run; a launcher of several machines needs them to
        know where, and a check has none.

        Each gets its place, its share of devices and threads, and a folder of its own, by ``rank_jobs``. They live and
        die together: once one has failed the others have a few seconds to end by themselves.
        """

    def poll(self) -> list[Exit]:
        """Return the runs that ended since the last call, each once. Tops up the standbys."""

    def kill(self, run_id: str, *, grace: float = 0.0) -> None:
        """SIGTERM now and SIGKILL after `grace` seconds (``poll`` does the second), the workers' children included."""

    def ask_for_stacks(self, run_id: str) -> None:
        """Have its processes write the stack of every thread to their output; they may hang, and go on after it."""

    def stopped(self, run_id: str) -> list[int]:
        """Return the numbers of its processes that a signal has stopped (SIGSTOP)."""

    def logs(self, run_id: str, offset: int, rank: int = 0) -> Output:
        """Return what a worker has written since `offset` bytes, whole lines only unless it has ended."""

    def release_output(self, run_id: str, rank: int, start: int, end: int) -> None:
        """Give back the disk space of these bytes of a worker's output: nobody reads them again."""

    def adopt(self, run_id: str, handle: dict[str, Any]) -> bool:
        """Take up the workers started by an earlier master; False if all are gone."""

    def warm(self, kind: WorkerKind) -> None:
        """Have a standby of this kind ready soon."""

    def standbys(self) -> dict[str, int]:
        """Return how many standbys of each framework are ready."""

    def close(self, *, kill_workers: bool) -> None:
        """Stop all standbys; running workers live on unless `kill_workers`."""


@runtime_checkable
class Cluster(Protocol):
    """What a launcher of several machines has besides: its slots come and go. Called from the launcher's one thread."""

    def slots(self) -> list[SlotInfo]:
        """Return the slots that exist now and that nobody outside of this master uses, those of a node together."""

    def nodes(self) -> list[NodeInfo]:
        """Return the machines, those that cannot run workers among them, each with the reason."""

    def want(self, wanted: Sequence[SlotsWanted]) -> None:
        """Say what waits for more slots than there are, so that an autoscaler can add machines; empty for nothing."""

    def waits(self) -> dict[str, str]:
        """Return what runs that were started wait for before they can begin, in words, by run."""

    def trouble(self) -> str:
        """Return why the cluster cannot be used now, a sentence; empty if it can."""


@runtime_checkable
class HasModules(Protocol):
    """A launcher whose workers run in the Python of other machines. Called from the launcher's one thread."""

    def look_for_modules(self, executable: str, names: Sequence[str]) -> Future[list[MachineModules]]:
        """Ask which of these modules the machines can import; machines that do not answer are left out."""


@runtime_checkable
class HasRemarks(Protocol):
    """A launcher whose cluster others may use, too."""

    @property
    def remarks(self) -> list[str]:
        """Sentences on who else uses the cluster; any thread may ask."""


def remarks_of(launcher: Launcher) -> list[str]:
    """Return what is worth knowing about a cluster, as sentences."""
    return launcher.remarks if isinstance(launcher, HasRemarks) else []


@runtime_checkable
class HasDashboard(Protocol):
    """A launcher whose cluster has a page of its own."""

    @property
    def dashboard(self) -> str:
        """The page's address, empty where there is none now; any thread may ask."""


def dashboard_of(launcher: Launcher) -> str:
    """Return the address of a cluster's own page, empty where it has none."""
    return launcher.dashboard if isinstance(launcher, HasDashboard) else ""
