"""Says what a notebook keeps of an experiment or a trial, where its kernel can say it no more.

``python -P -m det_native.experimental.saved experiments|trials <number>`` writes one JSON object to stdout::

    {"created": str,          # when it was made: another master may have another experiment of that number
     "state": str,
     "data": {"text/plain": str, "text/html": str, "image/png": str}}   # the picture only if there are curves

The master is ``DET_MASTER``, or the one that runs on this machine; none is started. If it cannot be asked, the exit
status is 1 and stderr says why. The extension of the Jupyter server runs this: to draw takes memory and time, which are
not to be the server's.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import Any

from det_native.client.sdk.determined import Determined
from det_native.display.fallback import last_state
from det_native.errors import DetError


def saved_form(kind: str, number: str) -> dict[str, Any]:
    """Return what a notebook keeps of an experiment (`kind` ``experiments``) or a trial (``trials``).

    Raises
    ------
    NotFoundError
        If there is none of that number.
    MasterError
        If the master does not answer.
    """
    master = Determined()
    handle = master.get_experiment(int(number)) if kind == "experiments" else master.get_trial(int(number))
    detail = handle.detail()
    # Asked before what is kept is: should it end in between, the form does not count as the last one.
    return {"created": detail.created, "state": detail.state.name, "data": last_state(handle)}


def main(arguments: Sequence[str]) -> int:
    """Run the program; return its exit status."""
    kind, number = arguments
    try:
        answer = saved_form(kind, number)
    except DetError as error:
        print(error, file=sys.stderr)
        return 1
    print(json.dumps(answer))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
