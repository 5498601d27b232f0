"""The way from a worker to the master, for one run."""

from __future__ import annotations

import json
from pathlib import Path

from det_native.client.session import Session
from det_native.schema import routes
from det_native.schema.home import Home, read_runtime
from det_native.schema.reports import ReportsAccepted

_SEND_SECONDS = 30.0
_BEST_SECONDS = 1.0


def session_of_run(url: str, token: str, home: str = "") -> Session:
    """Return the session for the reports of a run.

    Parameters
    ----------
    home : str
        The master's folder, where the address of the next one is found when this one is gone; empty if it is not here.
    """

    def find() -> tuple[str, str] | None:
        runtime = read_runtime(Home(Path(home)))
        return None if runtime is None else (runtime.url, token)

    # One attempt each: the reporter repeats by itself, and a pause here would draw from the user's random numbers. A
    # silent master is the reporter's business too.
    return Session(url, token, attempts=1, tell_silence=False, find=find if home else None)


class MasterConnection:
    """Sends reports of a run and asks for its experiment's best metric; implements ``report.Connection``.

    Parameters
    ----------
    session : Session
        With the run's token.
    """

    def __init__(self, session: Session, run_id: str) -> None:
        self._session = session
        self._run_id = run_id

    def send(self, reports: list[str], progress: int | None = None, waiting: str | None = None) -> ReportsAccepted:
        """Send reports, each as JSON, how much the worker has done, and what the run waits for if that is new.

        Raises
        ------
        FencedError
            If the run is no longer the trial's current one.
        MasterError
            If the master refuses, or does not answer.
        """
        done = "null" if progress is None else progress
        others = "" if waiting is None else f',"waiting":{json.dumps(waiting)}'
        body = f'{{"progress":{done},"reports":[{",".join(reports)}]{others}}}'.encode()
        return self._session.call(routes.POST_REPORTS, body, run_id=self._run_id, timeout=_SEND_SECONDS)

    def best(self) -> float | None:
        """Return the experiment's best value of the searcher's metric, None if there is none yet.

        Raises
        ------
        MasterError
            If the master does not answer within a second.
        """
        return self._session.call(routes.GET_BEST, run_id=self._run_id, timeout=_BEST_SECONDS).value

    def close(self) -> None:
        """Close the connections."""
        self._session.close()
