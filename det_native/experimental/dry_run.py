"""A difference between notebook and worker is told at once, though the experiment waits for slots."""

from __future__ import annotations

import logging
import threading
import time

from det_native.capture.model import Bundle
from det_native.client.session import Session
from det_native.display.report import ShownReport
from det_native.errors import DetError
from det_native.schema import routes

logger = logging.getLogger("det_native")

#: Cells that took longer are not run besides.
SHORT = 10.0
_CHECK_SECONDS = 600.0
_TO_START = 1.0  # a trial that starts by then tells a difference itself


def begin_dry_run(
    session: Session, experiment_id: int, bundle: Bundle, seconds: float | None, shown: ShownReport
) -> threading.Thread | None:
    """Have the cells run once on the cluster while the experiment waits; a difference is a warning in the report.

    Nobody waits for it. Returns the thread that does; None where the cells took long, or do what is not to be repeated.

    Parameters
    ----------
    session : Session
    experiment_id : int
    bundle : Bundle
    seconds : float or None
        How long the cells took in the notebook, if that is known.
    shown : ShownReport
    """
    if seconds is None or seconds > SHORT or bundle.manifest.proof is None:
        return None
    arguments = (session, experiment_id, bundle.manifest.wider is not None, shown)
    thread = threading.Thread(target=_tell, args=arguments, name="det-dry-run", daemon=True)
    thread.start()
    return thread


def _tell(session: Session, experiment_id: int, has_wider: bool, shown: ShownReport) -> None:
    time.sleep(_TO_START)
    try:
        checked = session.call(routes.DRY_RUN_EXPERIMENT, experiment_id=experiment_id, timeout=_CHECK_SECONDS)
    except DetError as error:
        logger.info("The dry run of experiment %s gave no result: %s", experiment_id, error)
        return
    then = "It will run all cells that can run again instead." if has_wider else "It will end with this error."
    for problem in checked.problems:
        text = f"A dry run of the cells, while experiment {experiment_id} waits for slots: {problem.what}\n{then}"
        shown.add((), [text])
