"""What the master asks the machines of a cluster of their packages, until it is answered."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future

from det_native.master.launch.ray.bridge_process import BridgeProcess
from det_native.master.launch.ray.messages import LookForModules, Modules
from det_native.schema.cluster import MachineModules

Answer = Future[list[MachineModules]]


class Questions:
    """Those that are open; all of one thread."""

    def __init__(self) -> None:
        self._open: dict[int, Answer] = {}
        self._asked = 0

    def ask(self, bridge: BridgeProcess | None, executable: str, names: Sequence[str]) -> Answer:
        """Ask through a bridge which modules the machines can import; without one no machine answers."""
        answer: Answer = Future()
        if bridge is None:
            answer.set_result([])
            return answer
        self._asked += 1
        self._open[self._asked] = answer
        bridge.send(LookForModules(number=self._asked, executable=executable, names=list(names)))
        return answer

    def take(self, event: Modules) -> None:
        """Pass an answer on."""
        answer = self._open.pop(event.number, None)
        if answer is not None:
            answer.set_result(event.machines)

    def drop(self) -> None:
        """Answer those that are open with nothing: the bridge is gone."""
        for answer in self._open.values():
            answer.set_result([])
        self._open = {}
