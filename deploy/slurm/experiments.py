"""Pauses what runs before the allocation ends, and goes on with it in the next: ``experiments.py pause|resume FILE``.

Only what was paused here is resumed: what you have paused yourself stays so.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

import det_native as det
from det_native.client.handles import Experiment
from det_native.errors import DetError

#: The queued ones first: else they begin on the slots that the running ones give back.
_STATES = ("Queued", "Running")


def pause(notes: Path, seconds: float) -> None:
    """Pause all experiments that go on, note which, and wait until their workers have written their checkpoints."""
    paused: list[int] = json.loads(notes.read_text()) if notes.exists() else []
    for state in _STATES:
        for experiment in det.experiments(limit=None, state=state):
            if isinstance(experiment.id, int) and _done(experiment.pause):
                paused.append(experiment.id)
                # At once: should the time be over in the middle, the next allocation knows of these.
                notes.write_text(json.dumps(paused))
    end = time.monotonic() + seconds
    while (busy := [number for number in paused if _has_slots(det.attach(number))]) and time.monotonic() < end:
        time.sleep(1)
    print(f"paused {len(paused)} experiments; {len(busy)} of them did not end in {seconds:.0f} s", flush=True)


def resume(notes: Path) -> None:
    """Go on with the noted ones."""
    paused: list[int] = json.loads(notes.read_text()) if notes.exists() else []
    for number in paused:
        experiment: Experiment = det.attach(number)
        if experiment.state == "Paused":
            _done(experiment.resume)
    notes.unlink(missing_ok=True)
    print(f"resumed {len(paused)} experiments", flush=True)


def _has_slots(experiment: Experiment) -> bool:
    return any(trial.slots for trial in experiment.trials)


def _done(action: Callable[[], None]) -> bool:
    try:
        action()
    except DetError as error:  # it has ended meanwhile
        print(error, flush=True)
        return False
    return True


if __name__ == "__main__":
    if sys.argv[1] == "pause":
        pause(Path(sys.argv[2]), float(sys.argv[3]))
    else:
        resume(Path(sys.argv[2]))
