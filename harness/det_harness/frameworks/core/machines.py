"""The machines of a command's trial, of which each runs the command once: where they reach each other."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from det_harness.ranks.communicator import OneProcess
from det_harness.ranks.exchange import Exchange
from det_harness.ranks.network import listener, network_of
from det_native.schema.job import Gang

_FIRST = "first"


class OnMachines(OneProcess):
    """Stands for the process of one machine.

    Attributes
    ----------
    addresses : list of str
        Of all machines, in their order.
    port : int
        One of the first machine, which was free.
    secret : str
        What all of them know, and nobody else.
    """

    def __init__(self, addresses: list[str], port: int, secret: str) -> None:
        super().__init__()
        self.addresses = addresses
        self.port = port
        self.secret = secret


@contextmanager
def on_machines(gang: Gang | None, config: Mapping[str, Any], folder: Path) -> Iterator[OneProcess]:
    """Meet the processes of the trial's other machines; see ``FrameworkHarness.joined``."""
    if gang is None or gang.cross_size == 1:
        yield OneProcess()
        return
    exchange, address = Exchange(folder, gang.size), network_of(gang, config).address
    if gang.rank == 0:
        with listener(address) as free:
            port = free.getsockname()[1]
        exchange.say(_FIRST, {"port": port, "secret": secrets.token_hex(32)})
    exchange.say(f"address-{gang.rank}", address)
    names = [_FIRST, *(f"address-{rank}" for rank in range(gang.size))]
    first, *addresses = exchange.await_all(names, "not all machines of the trial were there")
    yield OnMachines(addresses, first["port"], first["secret"])
