"""What the processes of a trial beside the first have measured after that had reported for the last time."""

from __future__ import annotations

import logging

from sqlalchemy.exc import OperationalError

from det_native.master.flow.active import Active
from det_native.master.flow.context import Context
from det_native.master.store import runs, system
from det_native.master.store.database import is_disk_full
from det_native.schema.system_samples import left_samples

logger = logging.getLogger(__name__)


def store_left_samples(context: Context, run: Active) -> None:
    """Store the samples that the processes of an ended run have left in their folders; those that are known are not."""
    found = left_samples(context.folder_of(run.run_id), run.ranks)
    if not found:
        return
    try:
        with context.database.write() as transaction:
            known = runs.get(transaction.connection, run.run_id)
            if known is not None:
                system.add(transaction, run.trial_id, known.number, found)
    except OperationalError as error:
        if not is_disk_full(error):
            raise
        logger.warning("The disk is full: samples that run %s has left are not kept.", run.run_id)
