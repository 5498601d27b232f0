"""The agent of a machine: an actor whose methods the bridge calls. It imports no Ray; the bridge makes it an actor."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from det_native.master.launch.ray.asks.kinds import AgentFacts, Ask, Reply
from det_native.master.launch.ray.messages import Worker


class NodeAgent:
    """Runs workers on this machine for one master.

    All methods are coroutines and return soon, but for :meth:`asks`, which waits. What is called twice, since an
    answer was lost, is done once.

    Parameters
    ----------
    folder : str
        The agent's own folder on this machine; ``~`` is this user's home. Others of this machine share its parent.
    cluster : str
        Name of the master's home and of the Ray cluster, for the files of other masters not to be mixed up.
    device : str
        What the slots here are: ``cpu`` or ``cuda``.
    slots : int
        How many there are.
    """

    def __init__(self, folder: str, cluster: str, device: str, slots: int) -> None:
        self._folder = Path(folder).expanduser()

    async def facts(self) -> AgentFacts:
        """Return what this machine is like."""
        raise NotImplementedError

    async def asks(self, bridge: str, most: int = 64) -> list[Ask]:
        """Return asks once there are some; an empty list after some seconds.

        Parameters
        ----------
        bridge : str
            Name of the process that asks. When another one comes, all that is unanswered is given to that one.
        most : int
        """
        raise NotImplementedError

    async def answer(self, replies: Sequence[tuple[int, Reply]]) -> None:
        """Take answers to asks, by their numbers."""
        raise NotImplementedError

    async def start(self, run_id: str, rank: int, job: str, worker: Worker) -> dict[str, object]:
        """Start one process of a run.

        Parameters
        ----------
        run_id : str
        rank : int
        job : str
            The job of this process as JSON, its gang filled in, its paths those of the master's machine.
        worker : Worker

        Returns
        -------
        dict
            ``pid``, and ``standby``: how warm the process was.

        Raises
        ------
        DetError
            If the files that it needs cannot be had.
        """
        raise NotImplementedError

    async def kill(self, run_id: str, grace: float = 0.0) -> None:
        """SIGTERM the processes of a run here now, SIGKILL them after `grace` seconds; ``RankEnded`` comes for each."""
        raise NotImplementedError

    async def stacks(self, run_id: str) -> None:
        """Have the processes of a run here write the stack of every thread to their output."""
        raise NotImplementedError

    async def stopped(self, run_id: str) -> list[int]:
        """Return the numbers of the processes of a run here that a signal has stopped."""
        raise NotImplementedError

    async def share(self, run_id: str, name: str, content: bytes) -> None:
        """Put a file of another machine of the run where the processes here look for it."""
        raise NotImplementedError

    async def runs(self) -> dict[str, list[int]]:
        """Return the ranks that live here or whose end was not answered yet, by run."""
        raise NotImplementedError

    async def warm(self, worker: Worker) -> None:
        """Have a standby of this kind ready soon."""
        raise NotImplementedError

    async def standbys(self) -> dict[str, int]:
        """Return how many standbys of each framework are ready."""
        raise NotImplementedError

    async def close(self, kill_workers: bool) -> None:
        """Stop the standbys, and the workers too if asked."""
        raise NotImplementedError
