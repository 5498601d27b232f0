"""What may be done twice is done again after a cut."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from det_native.client.causes import broke_off
from det_native.errors import MasterUnreachableError, NoMasterError

Result = TypeVar("Result")

# Seconds between one attempt and the next.
_PAUSES = (0.5, 1.0, 2.0, 4.0)


def over_cuts(session: object, action: Callable[[], Result]) -> Result:
    """Do something, from its beginning once more if the connection breaks off meanwhile.

    Parameters
    ----------
    session : Session
        One without a route gives up at once where nothing listens, or nothing was said for long.
    action : callable
        What may be repeated.

    Raises
    ------
    MasterUnreachableError
        If it breaks off each time, or no master runs there any more.
    """
    for pause in _PAUSES:
        try:
            return action()
        except NoMasterError:
            raise
        except MasterUnreachableError as error:
            if getattr(session, "route", None) is None and not broke_off(error.__cause__):
                raise
        time.sleep(pause)
    return action()
