"""Says what a notebook keeps of an experiment or a trial, where its kernel can say it no more.

``python -P -m det_native.experimental.saved experiments|trials|local <number>`` writes one JSON object to stdout; of a
trial of a local run, the number is ``<run>/<trial>``::

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

from det_native.client.handles import Experiment
from det_native.client.trial import Trial
from det_native.display.fallback import last_state
from det_native.errors import DetError, NotFoundError
from det_native.experimental.existing import Determined, attach


def saved_form(kind: str, number: str) -> dict[str, Any]:
    """Return what a notebook keeps of an experiment (`kind` ``experiments``), a trial (``trials``) or a ``local`` run.

    Raises
    ------
    NotFoundError
        If there is none of that number, or no such trial of a local run.
    MasterError
        If the master does not answer.
    """
    handle = _handle(kind, number)
    detail = handle.detail()
    # Asked before what is kept is: should it end in between, the form does not count as the last one.
    return {"created": detail.created, "state": detail.state.name, "data": last_state(handle)}


def _handle(kind: str, number: str) -> Experiment | Trial:
    if kind != "local":
        master = Determined()
        return master.get_experiment(int(number)) if kind == "experiments" else master.get_trial(int(number))
    run, _, trial = number.partition("/")
    experiment = attach(f"local-{run}")
    if not trial:
        return experiment
    for each in experiment.trials:
        if each.id == int(trial):
            return each
    raise NotFoundError(f"The local run local-{run} has no trial {trial}.")


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
