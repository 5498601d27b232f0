"""What the code of trials changes in names of the notebook, and nothing brings home: said where code reads it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from det_native.carried.call import CallNames
from det_native.client.handles import Experiment
from det_native.pending import lost
from det_native.pending.cells import watch_cells
from det_native.pending.following import around_call
from det_native.pending.reading import reading_of


def note_staying(experiment: Experiment, roots: Mapping[str, Any]) -> None:
    """Note which names of the notebook the trials of an experiment change, each of them by itself.

    Parameters
    ----------
    experiment : Experiment
    roots : mapping of str to object
        The classes, functions and objects whose code trials run.
    """
    try:
        changed = CallNames(roots, {}).names_changed("__main__")
    except Exception:  # noqa: BLE001 (users' objects may raise anything when they are looked at; this is a hint only)
        return
    if not changed:
        return
    lost.note_of_trials(experiment.id, changed)
    watch_cells()
    read: set[str] = set()
    for around in around_call(loop=False) or ():
        for segment in around.segments:
            read |= reading_of(segment, around.lookup(), ()).all_names
    lost.tell(sorted(read))
