"""Whether the machines of a trial reach each other: found out before a backend waits for ever for one that does not."""

from __future__ import annotations

import socket
import time
from pathlib import Path
from typing import Any

from det_harness.ranks.exchange import wait_until
from det_harness.ranks.network import Network, listener
from det_native.errors import RankLostError, UnreachableError
from det_native.schema.job import Gang

#: By then who listens was reached, if it can be.
REACH_SECONDS = 20.0

_TRY_SECONDS = 5.0
_ADVICE = (
    "The machines of a trial connect to each other on any port, so a firewall between them has to let that pass; if "
    "they have several networks, set distributed.interface to the interface of the one that connects them."
)


def reach_first(gang: Gang, host: str, port: int, end: float) -> None:
    """See that this process reaches the first one, which listens already.

    Parameters
    ----------
    end : float
        Monotonic time until which it may take.

    Raises
    ------
    UnreachableError
    RankLostError
        If the first process has ended.
    """
    if gang.cross_rank == 0:
        return
    ended = Path(gang.rendezvous).with_name("exit.json").exists  # it comes from the first machine
    problem = ""

    def reached() -> bool:
        nonlocal problem
        problem = _problem(host, port)
        return not problem or ended()

    wait_until(reached, max(min(end - time.monotonic(), REACH_SECONDS), 0.0))
    if problem and ended():
        raise RankLostError(
            f"The first process of the trial, at {host}, has ended before this one had joined it. Its output says why."
        )
    if problem:
        raise unreachable(gang.address, host, f"port {port}: {problem}", "the first process of the trial")


def reach_all(gang: Gang, network: Network, store: Any) -> None:
    """See that the machines of a trial reach each other, each the others; all processes have to call it.

    torch would wait for ever where one cannot.

    Parameters
    ----------
    store : torch.distributed.Store
        In which the processes have met.

    Raises
    ------
    UnreachableError
        In every process.
    """
    if gang.cross_size == 1:
        return
    if gang.local_rank == 0:
        with listener(network.address) as listening:
            _say(store, "listens", gang.cross_rank, f"{network.address} {listening.getsockname()[1]}")
            others = (machine for machine in range(gang.cross_size) if machine != gang.cross_rank)
            failed = (text for machine in others if (text := _failed(store, network, machine)))
            _say(store, "reached", gang.cross_rank, next(failed, "all"))
            results = _hear_all(store, "reached", gang.cross_size)  # until then it listens
    else:
        results = _hear_all(store, "reached", gang.cross_size)
    for result in results:
        if result != "all":
            raise UnreachableError(result)


def _failed(store: Any, network: Network, machine: int) -> str:
    host, port = _hear(store, "listens", machine).split()
    problem = _problem(host, int(port))
    return str(unreachable(network.address, host, f"port {port}: {problem}")) if problem else ""


def _problem(host: str, port: int) -> str:
    """Return why a port is not reached; empty if it is."""
    try:
        socket.create_connection((host, port), _TRY_SECONDS).close()
    except OSError as error:
        return error.strerror or str(error)
    return ""


def unreachable(own: str, host: str, why: str, who: str = "another process of the trial") -> UnreachableError:
    return UnreachableError(f"The machine at {own} does not reach {host} ({why}), where {who} is. {_ADVICE}")


def _say(store: Any, name: str, machine: int, text: str) -> None:
    store.set(f"{name}/{machine}", text)


def _hear(store: Any, name: str, machine: int) -> str:
    text: str = store.get(f"{name}/{machine}").decode()
    return text


def _hear_all(store: Any, name: str, machines: int) -> list[str]:
    return [_hear(store, name, machine) for machine in range(machines)]
