"""A master of its own in a process of its own, whose one run is spoken for by the benchmark. Not a test."""

from __future__ import annotations

import json
import sys
import threading
from pathlib import Path
from typing import Any

import uvicorn

from det_native.master.app import build
from det_native.master.launch.base import Exit, Output, WorkerKind
from det_native.schema.job import CheckJob, TrialJob
from det_native.schema.rest import SlotInfo
from det_native.schema.sockets import short_path, url_of


class SpokenFor:
    """A launcher that starts nothing: it says who the run is, and the benchmark reports in its name."""

    def start(
        self, run_id: str, job: TrialJob | CheckJob, kind: WorkerKind, *, ranks: int = 1, slots: Any = ()
    ) -> dict[str, Any]:
        """Say the run's token."""
        if isinstance(job, TrialJob):
            print(json.dumps({"run_id": run_id, "trial_id": job.trial_id, "token": job.token}), flush=True)
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


def main(home: Path) -> None:
    """Serve until standard input ends."""
    slots = [SlotInfo(id=f"cpu:{number}", device="cpu") for number in range(32)]
    place = short_path(str(home))
    service, app = build(home, SpokenFor(), slots, url_of(place))
    server = uvicorn.Server(uvicorn.Config(app, uds=str(place), log_config=None, access_log=False))
    startup = server.startup

    async def tell(sockets: Any = None) -> None:
        await startup(sockets)
        token = (home / "token").read_text().strip()
        print(json.dumps({"url": url_of(place), "token": token}), flush=True)

    server.startup = tell  # type: ignore[method-assign]

    def stop() -> None:
        sys.stdin.read()
        service.broker.close()
        server.should_exit = True

    threading.Thread(target=stop, daemon=True).start()
    service.start()
    try:
        server.run()
    finally:
        service.close()
        place.unlink(missing_ok=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
