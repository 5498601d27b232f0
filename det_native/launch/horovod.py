"""Starts a command on each slot of one machine by ``horovodrun``.

``python3 -m det_native.launch.horovod [[ARGUMENTS OF HOROVODRUN...] --] python3 train.py``
"""

from __future__ import annotations

import sys

from det_native.frameworks import has_horovod, missing_horovod
from det_native.launch.layer import arguments_of, become, job, with_rank


def main() -> None:
    """Start it."""
    given = arguments_of(sys.argv[1:], "det_native.launch.horovod")
    of = job()
    if not (has_horovod("torch") or has_horovod("tensorflow")):
        sys.exit(str(missing_horovod()))
    if of is not None and of.machines > 1:
        sys.exit(
            "horovodrun reaches other machines by SSH, which workers do not have: give the trial the slots of one "
            "machine (resources.is_single_node: true), or start it by det_native.launch.torch_distributed."
        )
    slots = 1 if of is None else of.slots_here
    run = [sys.executable, "-m", "horovod.runner.launch", "--gloo", "-np", str(slots), "-H", f"localhost:{slots}"]
    become([*run, *given.launcher, *with_rank("HOROVOD_RANK", given.command)])


if __name__ == "__main__":
    main()
