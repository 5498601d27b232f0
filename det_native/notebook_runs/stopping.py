"""Stops the experiments of a run that is stopped."""

from __future__ import annotations

from contextlib import suppress

from det_native.client.connect import connect
from det_native.errors import DetError
from det_native.notebook_runs.folders import RunFolder
from det_native.schema import routes


def stop_experiments(folder: RunFolder) -> None:
    """Stop the experiments of a run that go on; those in its kernel end with it."""
    for master, numbers in folder.experiments_by_master().items():
        with suppress(DetError):
            session = connect(master or None, start=False)
            for number in numbers:
                with suppress(DetError):
                    if not session.call(routes.GET_EXPERIMENT, experiment_id=number).state.terminal:
                        session.call(routes.STOP_EXPERIMENT, experiment_id=number)
