"""Following the logs of an experiment: through an outage of the master, and of many trials at once."""

from __future__ import annotations

import json

import pytest

from det_native.client import following
from det_native.client.log_options import LogOptions
from det_native.client.source import Source
from det_native.errors import MasterUnreachableError
from det_native.schema import rest
from det_native.schema.states import ExperimentState, TrialState


def trial(number: int, state: TrialState, run_id: str | None = "r") -> rest.Trial:
    return rest.Trial.model_construct(id=number, experiment_id=7, state=state, run_id=run_id)


def line(number: int, of: int) -> rest.LogLine:
    return rest.LogLine(id=number, trial_id=of, run_id="r", time="12:00", stream="stdout", text=f"line {number}")


class Moments(Source):
    """An experiment that is something else each time that it is asked for."""

    patience = 60.0

    def __init__(self, *moments: list[rest.Trial] | BaseException) -> None:
        self._moments = iter(moments)
        self._left = len(moments)
        self._now: list[rest.Trial] = []
        self.lines: list[rest.LogLine] = []
        self.asked: list[list[int]] = []

    def experiment(self, experiment_id: int | str) -> rest.ExperimentDetail:
        """Return it, as it is in the next moment; it has ended in the last one."""
        self._left -= 1
        moment = next(self._moments)
        if isinstance(moment, BaseException):
            raise moment
        self._now = moment
        self.asked.append([])
        state = ExperimentState.ACTIVE if self._left else ExperimentState.COMPLETED
        return rest.ExperimentDetail.model_construct(id=7, state=state)

    def trials(self, experiment_id: int | str) -> list[rest.Trial]:
        """Return its trials."""
        return self._now

    def logs(self, trial_id: int, after: int = 0, last: int | None = None) -> list[rest.LogLine]:
        """Return the lines of a trial."""
        self.asked[-1].append(trial_id)
        return [each for each in self.lines if each.trial_id == trial_id and each.id > after]


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]

    def sleep(seconds: float) -> None:
        now[0] += seconds

    monkeypatch.setattr("time.sleep", sleep)
    monkeypatch.setattr("time.monotonic", lambda: now[0])


def printed(source: Source, capsys: pytest.CaptureFixture[str], *, as_json: bool = False) -> list[str]:
    following.print_logs(source, 7, None, LogOptions(follow=True, as_json=as_json))
    return capsys.readouterr().out.splitlines()


def test_a_master_that_is_gone_for_a_while_is_waited_for(capsys: pytest.CaptureFixture[str]) -> None:
    running = [trial(1, TrialState.RUNNING)]
    gone = [MasterUnreachableError("gone")] * 3
    source = Moments(running, *gone, running, [trial(1, TrialState.COMPLETED)])
    source.lines = [line(1, 1), line(2, 1)]
    assert printed(source, capsys) == ["line 1", "line 2"]


def test_one_that_does_not_answer_at_first_is_said_at_once() -> None:
    with pytest.raises(MasterUnreachableError):
        following.print_logs(Moments(MasterUnreachableError("gone")), 7, None, LogOptions(follow=True))


def test_of_many_trials_only_those_are_asked_for_that_may_write(capsys: pytest.CaptureFixture[str]) -> None:
    def moment(first: TrialState, second: TrialState) -> list[rest.Trial]:
        return [trial(1, first), trial(2, second), trial(3, TrialState.QUEUED, None)]

    done, running = TrialState.COMPLETED, TrialState.RUNNING
    source = Moments(
        moment(running, running), *[moment(done, running)] * 40, moment(running, running), moment(done, done)
    )
    source.lines = [line(5, 2), line(4, 1)]
    assert printed(source, capsys) == ["[trial 1] line 4", "[trial 2] line 5"]
    assert source.asked[0] == [1, 2, 3], "what is there already"
    assert source.asked[1] == [1, 2], "the last lines of a trial come after its end"
    assert source.asked[40] == [2]
    assert source.asked[41] == [1, 2], "a search trains it on"
    assert source.asked[42] == [1, 2, 3], "nothing is left out in the end"


def test_after_ctrl_c_it_says_that_the_experiment_goes_on(capsys: pytest.CaptureFixture[str]) -> None:
    source = Moments([trial(1, TrialState.RUNNING)], KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        following.print_logs(source, 7, None, LogOptions(follow=True))
    assert "Experiment 7 goes on: `det logs 7 -f` follows it" in capsys.readouterr().err


def test_lines_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    source = Moments([trial(1, TrialState.COMPLETED)])
    source.lines = [line(1, 1)]
    [only] = printed(source, capsys, as_json=True)
    assert (json.loads(only)["text"], json.loads(only)["trial_id"]) == ("line 1", 1)
