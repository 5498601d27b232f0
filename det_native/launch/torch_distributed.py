"""Starts a command on each slot by ``torch.distributed.run``.

``python3 -m det_native.launch.torch_distributed [[ARGUMENTS OF TORCHRUN...] --] python3 train.py``. How many processes
and machines there are, ``torchrun`` reads from the environment that a trial's command has.
"""

from __future__ import annotations

import sys

from det_native.launch.layer import arguments_of, become, with_rank


def main(name: str = "det_native.launch.torch_distributed") -> None:
    """Start it."""
    given = arguments_of(sys.argv[1:], name)
    run = [sys.executable, "-m", "torch.distributed.run", "--no-python", *given.launcher]
    become([*run, *with_rank("RANK", given.command)])


if __name__ == "__main__":
    main()
