"""Starts a command of TensorFlow, which uses all GPUs of a machine from one process (``MirroredStrategy``).

``python3 -m det_native.launch.tensorflow [--] python3 train.py``
"""

from __future__ import annotations

import sys

from det_native.launch.layer import arguments_of, become, job, with_rank


def main() -> None:
    """Start it."""
    given, of = arguments_of(sys.argv[1:], "det_native.launch.tensorflow"), job()
    if of is not None and of.machines > 1:
        sys.exit(
            "TensorFlow's own strategies for several machines listen for anybody who reaches them: give the trial the "
            "slots of one machine (resources.is_single_node: true), or train by fit() of det.experimental.keras."
        )
    become(with_rank("0", given.command))


if __name__ == "__main__":
    main()
