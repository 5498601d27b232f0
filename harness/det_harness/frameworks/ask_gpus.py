"""Run as ``python -m det_harness.frameworks.ask_gpus NAME``: prints what a framework sees of GPUs, as JSON.

A process for each framework, since two of them in one may disturb each other.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict

from det_harness.frameworks.base import harness_of


def main() -> None:
    """Print what the framework sees that the argument names, or ``null`` where it cannot be asked."""
    sight = harness_of(sys.argv[1]).gpu_sight()
    print(json.dumps(None if sight is None else {**asdict(sight), "why_none": sight.why_none}))


if __name__ == "__main__":
    main()
