"""``python -m det_native.master``: the master of one home folder, until SIGTERM."""

from __future__ import annotations

import logging
import os
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from urllib.parse import urlsplit

from det_native._version import __version__
from det_native.errors import DetError
from det_native.master import home as home_folder
from det_native.master.config import LOOPBACK, MasterConfig, parse_arguments
from det_native.master.logs import set_up_logging
from det_native.schema.home import RuntimeFile

logger = logging.getLogger("det_native.master")

# The master's own files are its user's only; what the user's code writes follows the user's habit.
_UMASK = 0o077
_FAILED = 1
_MISUSED = 2
#: The home cannot be had: it is not this user's, or another master has it. Nobody need try again soon.
_NO_HOME = 4


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a master; return the exit code."""
    begun = time.monotonic()
    try:
        config = parse_arguments(sys.argv[1:] if arguments is None else arguments)
    except DetError as error:
        print(f"det_native.master: {error}", file=sys.stderr)
        return _MISUSED
    if config.ready_fd is not None:
        os.set_inheritable(config.ready_fd, False)
    users_umask = os.umask(_UMASK)
    try:
        home_folder.prepare(config.home)
        held = home_folder.lock(config.home)
    except (DetError, OSError) as error:
        print(f"det_native.master: {error}", file=sys.stderr)
        return _NO_HOME
    try:
        set_up_logging(config.home.log, background=config.ready_fd is not None)
        _run(config, begun, users_umask)
    except DetError as error:
        logger.error("the master does not start: %s", error)
        return _FAILED
    finally:
        held.release()
        os.umask(users_umask)
    return 0


def _run(config: MasterConfig, begun: float, users_umask: int) -> None:
    from det_native.master.launch.base import WorkerKind
    from det_native.master.launching import make_launcher, telling, wait_for_cluster

    place = ""
    launching = make_launcher(config, users_umask, lambda: place)
    launcher, slots = launching.launcher, launching.slots
    try:
        # First of all, so that frameworks load while the rest of the master does.
        for framework in config.warm:
            launcher.warm(WorkerKind(framework))

        from det_native.master import kept_settings, runtime_file
        from det_native.master.app import build
        from det_native.master.connections import raise_descriptor_limit
        from det_native.master.home_watch import HomeWatch
        from det_native.master.serving import Server, listen, local_socket, tcp_url
        from det_native.schema.sockets import url_of

        raise_descriptor_limit()
        with ExitStack() as listening:
            by_tcp = listen(config, runtime_file.last_port(config.home))
            if by_tcp is not None:
                listening.enter_context(by_tcp)
                runtime_file.remember_port(config.home, by_tcp.getsockname()[1])
            home_folder.renew_exposed_token(config.home)
            local = listening.enter_context(local_socket(config.home))
            url = place = url_of(Path(local.getsockname()))
            if launching.cluster is not None:
                wait_for_cluster(config, launching.cluster)
            tcp = None if by_tcp is None else tcp_url(config, by_tcp)
            with telling(config):
                storage, options = kept_settings.settle(config.home, config.storage, config.storage_options)
                of_checkpoints = kept_settings.checkpoint_options(
                    config.home, config.checkpoints, config.checkpoint_options
                )
                database = kept_settings.settle_variables(config.home)
                service, app = build(
                    config.home.path,
                    launcher,
                    slots,
                    url,
                    database_url=database,
                    hosts=[] if tcp is None else [urlsplit(tcp).hostname or ""],
                    policy=config.scheduler,
                    without_slots=config.without_slots,
                    storage_url=storage,
                    storage_options=options,
                    checkpoint_url=config.checkpoints,
                    checkpoint_options=of_checkpoints,
                    budget=config.disk_budget,
                    launched_by=config.launcher,
                )
                checkpoints = (config.checkpoints, of_checkpoints)
                kept_settings.keep(config.home, database, storage=(storage, options), checkpoints=checkpoints)

            announced: list[RuntimeFile] = []

            def ready() -> None:
                announced.append(runtime_file.announce(config.home, url, tcp, storage, config.launcher, config.options))
                if config.ready_fd is not None:
                    with suppress(BrokenPipeError):  # a script that had it started, to record a run, has ended
                        os.write(config.ready_fd, b"ready\n")
                    os.close(config.ready_fd)
                seconds = time.monotonic() - begun
                places = url if tcp is None else f"{url} and {tcp}"
                logger.info(
                    "version %s answers at %s with %d slots, %.2f s",
                    __version__,
                    places,
                    len(service.slots.now),
                    seconds,
                )

            def keep_announced() -> None:
                for runtime in announced:
                    runtime_file.keep(config.home, runtime)

            async def go_on() -> None:
                set_up_logging(config.home.log, background=config.ready_fd is not None)
                await server.listen_at(listening.enter_context(local_socket(config.home)))
                announced[:] = [runtime_file.announce(config.home, url, tcp, storage, config.launcher, config.options)]

            watch = HomeWatch(config.home, keep_announced, go_on)
            server = Server(
                app,
                config,
                on_ready=ready,
                on_stop=service.close,
                has_home=watch.has_home,
            )
            service.on_shutdown = server.stop

            async def open_page() -> str:
                if tcp is not None:
                    return tcp
                port = await server.open_to_browsers(runtime_file.last_port(config.home))
                runtime_file.remember_port(config.home, port)
                return f"http://{LOOPBACK}:{port}"

            app.state.open_page = open_page
            try:
                service.start()
                server.serve_until_stopped(*filter(None, (local, by_tcp)))
            finally:
                runtime_file.withdraw(config.home)
                service.close()
    finally:
        launcher.close(kill_workers=False)
    logger.info("stopped")


if __name__ == "__main__":
    sys.exit(main())
