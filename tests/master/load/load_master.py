"""A real master in a process of its own, whose launcher starts no processes: it says the token of each run. Not a test.

``load_master.py HOME SLOTS [DATABASE_URL]``; it ends with its standard input. ``DET_PROFILE`` names a file for the
profile of its event loop.
"""

from __future__ import annotations

import cProfile
import json
import os
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from det_native.master import home as home_folder
from det_native.master.app import build
from det_native.master.config import MasterConfig
from det_native.master.launch.base import Exit, Output, WorkerKind
from det_native.master.serving import Server, local_socket
from det_native.schema.home import Home
from det_native.schema.job import CheckJob, TrialJob
from det_native.schema.rest import SlotInfo
from det_native.schema.sockets import url_of


def say(**values: Any) -> None:
    """Write a line for the test."""
    sys.stdout.write(json.dumps(values) + "\n")
    sys.stdout.flush()


class SayingLauncher:
    """Starts nothing: it says who the run is, and another process reports in its name."""

    def start(
        self, run_id: str, job: TrialJob | CheckJob, kind: WorkerKind, *, ranks: int = 1, slots: Sequence[str] = ()
    ) -> dict[str, Any]:
        """Say the run's token."""
        if isinstance(job, TrialJob):
            say(run_id=run_id, trial_id=job.trial_id, experiment_id=job.experiment_id, token=job.token)
        return {}

    def poll(self) -> list[Exit]:
        """Return none: the runs go on until the process ends."""
        return []

    def kill(self, run_id: str, *, grace: float = 0.0) -> None:
        """There is nothing to end."""

    def stopped(self, run_id: str) -> list[int]:
        """Return that nothing is stopped."""
        return []

    def ask_for_stacks(self, run_id: str) -> None:
        """There are none."""

    def logs(self, run_id: str, offset: int, rank: int = 0) -> Output:
        """Return no output."""
        return Output("", offset)

    def adopt(self, run_id: str, handle: dict[str, Any]) -> bool:
        """Return that no run outlives the process."""
        return False

    def warm(self, kind: WorkerKind) -> None:
        """There is nothing to warm up."""

    def standbys(self) -> dict[str, int]:
        """Return none."""
        return {}

    def close(self, *, kill_workers: bool) -> None:
        """There is nothing to end."""


async def _has_home() -> bool:
    return True


def main(place: Path, slots: int, database_url: str | None) -> None:
    """Serve until standard input ends."""
    home = Home(place)
    home_folder.prepare(home)
    config = MasterConfig(home=home)
    infos = [SlotInfo(id=f"cpu:{number}", device="cpu") for number in range(slots)]
    with local_socket(home) as listening:
        url = url_of(Path(listening.getsockname()))
        service, app = build(place, SayingLauncher(), infos, url, database_url=database_url)

        def ready() -> None:
            say(url=url, token=home.token.read_text().strip())

        server = Server(app, config, on_ready=ready, on_stop=service.close, has_home=_has_home)
        service.on_shutdown = server.stop

        def stop() -> None:
            sys.stdin.read()
            server.stop()

        threading.Thread(target=stop, daemon=True).start()
        service.start()
        server.serve_until_stopped(listening)


if __name__ == "__main__":
    chosen = (Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3] if len(sys.argv) > 3 else None)
    profile = os.environ.get("DET_PROFILE")
    if profile is None:
        main(*chosen)
    else:
        with cProfile.Profile() as taken:
            main(*chosen)
        taken.dump_stats(profile)
