"""``python -m det_native.master.launch.ray.bridge``: one connection to a Ray cluster, for one master.

It reads what the launcher says from its standard input, a line of JSON each, and answers on its standard output. It
ends when the launcher is gone.
"""

from __future__ import annotations

import argparse
import asyncio
import getpass
import json
import logging
import os
import pkgutil
import platform
import signal
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import ValidationError

from det_native.master.launch.ends import RANK_GRACE_SECONDS
from det_native.master.launch.ray.messages import COMMAND, Alive, Command, Connected, Event, Lost

if TYPE_CHECKING:
    from det_native.master.launch.ray.bridge.connecting import Connection

logger = logging.getLogger("det_native.bridge")

_AGENT = "det_native.master.launch.ray.agent.agent:NodeAgent"
_LONGEST_LINE = 1 << 30
#: The head of the cluster is away: another connection is worth it.
_AWAY = 3
_REFUSED = 4
#: The launcher ends a bridge that is silent for some times as long.
_ALIVE_SECONDS = 10.0


def main() -> int:
    """Run the bridge; return the exit code."""
    arguments = _parse()
    events = os.dup(1)
    os.dup2(2, 1)  # Ray prints what it likes
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(levelname)s %(message)s", force=True)
    # It takes seconds to import, in every environment that has JupyterLab, and Ray does without it.
    sys.modules["rfc3987_syntax"] = None  # type: ignore[assignment]
    emit = _emitter(events)
    # Ctrl-C in the terminal of the master is the master's.
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    from det_native.master.launch.ray.bridge.addresses import RefusedError
    from det_native.master.launch.ray.bridge.connecting import connect

    try:
        connection = connect(arguments.address, arguments.namespace, trusted=arguments.trusted)
    except RefusedError as error:
        emit(Lost(why=str(error), for_good=not error.away))
        return _REFUSED
    code = asyncio.run(
        _serve(
            arguments,
            connection,
            emit,
            Connected(address=str(connection.address), ray=connection.ray, dashboard=connection.dashboard),
        )
    )
    os._exit(code)  # what threads of Ray wait for while its head is away


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="det_native.master.launch.ray.bridge")
    parser.add_argument("--address", required=True)
    parser.add_argument("--namespace", required=True)
    parser.add_argument("--home", type=Path, required=True)
    parser.add_argument("--url", required=True)
    parser.add_argument("--slots")
    parser.add_argument("--threads", type=int)
    parser.add_argument("--trusted", action="store_true")
    parser.add_argument("--names", type=json.loads, default={})
    parser.add_argument("--rank-grace", type=float, default=RANK_GRACE_SECONDS)
    parser.add_argument("--agent", default=_AGENT, help="module:class of the agents")
    return parser.parse_args()


async def _serve(
    arguments: argparse.Namespace, connection: Connection, emit: Callable[[Event], None], hello: Connected
) -> int:
    from det_native.master.launch.ray.asks.serving import AskServer
    from det_native.master.launch.ray.bridge.bridge import Bridge, Settings
    from det_native.master.launch.ray.bridge.cluster import Cluster
    from det_native.master.launch.ray.bridge.nodes import Machines, SlotRule
    from det_native.master.launch.ray.bridge.watch import HeadAwayError

    bridge = Bridge(
        Cluster(arguments.namespace, client=connection.address.client),
        AskServer(arguments.home, arguments.url),
        pkgutil.resolve_name(arguments.agent),
        Machines(SlotRule.parse(arguments.slots), arguments.names),
        Settings(
            arguments.namespace, _who(arguments.home), arguments.threads, arguments.rank_grace, connection.exposure
        ),
        emit,
    )
    emit(hello)
    alive = asyncio.create_task(_say_alive(emit))
    try:
        await bridge.run(_commands())
    except HeadAwayError as error:
        emit(Lost(why=str(error)))
        return _AWAY
    finally:
        alive.cancel()
        # Ray's client calls what is cancelled from here on an error.
        logging.getLogger("ray.util.client").setLevel(logging.CRITICAL)
    return 0


async def _say_alive(emit: Callable[[Event], None]) -> None:
    while True:
        emit(Alive())
        await asyncio.sleep(_ALIVE_SECONDS)


def _who(home: Path) -> str:
    """Say whose master this is."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a user without a name, as in containers
        user = f"user {os.getuid()}"
    return f"{user} on {platform.node()}, home {home}"


def _emitter(descriptor: int) -> Callable[[Event], None]:
    def emit(event: Event) -> None:
        data = event.model_dump_json().encode() + b"\n"
        try:
            while data:
                data = data[os.write(descriptor, data) :]
        except BrokenPipeError:
            os._exit(0)  # the launcher is gone

    return emit


async def _commands() -> AsyncIterator[Command]:
    reader = asyncio.StreamReader(limit=_LONGEST_LINE)
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while line := await reader.readline():
        try:
            yield COMMAND.validate_json(line)
        except ValidationError as error:
            logger.error("a message of the launcher is not understood: %s", error)


if __name__ == "__main__":
    sys.exit(main())
