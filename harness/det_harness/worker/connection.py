"""The way from a worker to the master, for one run."""

from __future__ import annotations

from det_native.client.session import Session
from det_native.schema.rest import BestMetric, ReportsAccepted

_SEND_SECONDS = 30.0
_BEST_SECONDS = 1.0
_JSON = {"Content-Type": "application/json"}


class MasterConnection:
    """Sends reports of a run and asks for its experiment's best metric; implements ``report.Connection``.

    Parameters
    ----------
    url : str
        The master's address.
    token : str
        The run's bearer token.
    run_id : str
    """

    def __init__(self, url: str, token: str, run_id: str) -> None:
        # One attempt each: the reporter repeats by itself, and a pause here would draw from the user's random numbers.
        self._session = Session(url, token, attempts=1)
        self._path = f"/runs/{run_id}"

    def send(self, reports: list[str]) -> ReportsAccepted:
        """Send reports, each as JSON.

        Raises
        ------
        FencedError
            If the run is no longer the trial's current one.
        MasterError
            If the master refuses, or does not answer.
        """
        body = f'{{"reports":[{",".join(reports)}]}}'.encode()
        answer = self._session.post(f"{self._path}/reports", data=body, headers=_JSON, timeout=_SEND_SECONDS)
        return ReportsAccepted.model_validate(answer)

    def best(self) -> float | None:
        """Return the experiment's best value of the searcher's metric, None if there is none yet.

        Raises
        ------
        MasterError
            If the master does not answer within a second.
        """
        with self._session.stream(f"{self._path}/best", timeout=_BEST_SECONDS) as response:
            return BestMetric.model_validate_json(response.content).value

    def close(self) -> None:
        """Close the connections."""
        self._session.close()
