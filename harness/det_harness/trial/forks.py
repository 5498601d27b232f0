"""A process that the user's code has forked, and that comes back into the training: it must not report or save.

It has the worker's spool, connections and number of batches, so what it told would be taken for what the worker did.
"""

from __future__ import annotations

import os
import sys
import traceback

_worker: int | None = None

_TEXT = (
    "A process that your code has forked (number {pid}) came back into the training. It ends here; only the "
    "process that began the training goes on with it. End such a process yourself, by os._exit().\n"
)


def this_is_the_worker() -> None:
    """Remember which process trains."""
    global _worker
    _worker = os.getpid()


def is_forked_child() -> bool:
    """Whether this is a process that was forked from the one that trains."""
    return _worker is not None and os.getpid() != _worker


def end_forked_child() -> None:
    """End this process, with a line in the log, if it was forked from the one that trains."""
    if is_forked_child():
        error = sys.exception()
        if error is not None and not isinstance(error, SystemExit):
            os.write(2, "".join(traceback.format_exception(error)).encode("utf-8", "replace"))
        # Nothing of Python's: what is buffered is the worker's, and so are its threads and handlers.
        os.write(2, _TEXT.format(pid=os.getpid()).encode())
        os._exit(0)
