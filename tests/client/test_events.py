"""The event stream over connections that break, and waiting on it."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_experiments import MadeSource, make_experiment, source_of, trial_row

from det_native.client import waiting
from det_native.client.events import EventFeed, EventStream, parse_frames
from det_native.client.progress import ExperimentProgress
from det_native.client.rendering import PlainProgress
from det_native.errors import MasterUnreachableError, UserCodeError
from det_native.schema import rest
from det_native.schema.states import ExperimentState, TrialState


def experiment(state: ExperimentState, **changes: object) -> rest.Experiment:
    detail = make_experiment().detail()
    return rest.Experiment.model_validate(
        detail.model_dump(exclude={"report"}) | {"state": state, "progress": 0.0, "trials": 1} | changes
    )


def event(number: int, *, state: str = "ACTIVE") -> rest.Event:
    return rest.Event(id=number, type="experiment", experiment_id=1, trial_id=None, data={"state": state})


class Script:
    """Connections that deliver events up to a cut, as a master does that is restarted again and again."""

    def __init__(self, events: list[rest.Event], cuts: list[int]) -> None:
        self.events = events
        self.cuts = list(cuts)
        self.asked: list[int] = []
        self.closed = 0

    def __call__(self, after: int) -> ScriptedConnection:
        self.asked.append(after)
        cut = self.cuts.pop(0) if self.cuts else None
        if cut == 0:
            raise MasterUnreachableError("away")
        wanted = [event for event in self.events if event.id > after]
        return ScriptedConnection(self, wanted if cut is None else wanted[:cut], broken=cut is not None)


class ScriptedConnection:
    def __init__(self, script: Script, events: list[rest.Event], *, broken: bool) -> None:
        self._script = script
        self._events = events
        self._broken = broken

    def lines(self) -> Iterator[str]:
        yield ": ping"
        for found in self._events:
            yield from (f"id: {found.id}", f"event: {found.type}", f"data: {found.model_dump_json()}", "")
        if self._broken:
            yield "data: {half an ev"
            raise MasterUnreachableError("cut")

    def close(self) -> None:
        self._script.closed += 1


def test_frames() -> None:
    lines = [": comment", "id: 4", "data: a", "data:b", "", "", "event: x", "", "data: last"]
    assert [(frame.id, frame.data) for frame in parse_frames(lines)] == [("", []), ("4", ["a", "b"])]


def test_stream_ends_with_the_experiment() -> None:
    script = Script([event(1), event(2, state="COMPLETED"), event(3)], [])
    assert [found.id for found in EventStream(script, lambda: False)] == [1, 2]


def test_a_silent_stream_ends_if_the_experiment_has() -> None:
    class Quiet:
        def lines(self) -> Iterator[str]:
            yield from (": ping", ": ping")
            raise AssertionError("the stream was read on")

        def close(self) -> None:
            """Nothing is open."""

    assert list(EventStream(lambda after: Quiet(), lambda: True, after=7)) == []


def test_a_stream_closed_by_the_master_ends_if_the_experiment_has() -> None:
    script = Script([event(1)], [])
    assert [found.id for found in EventStream(script, lambda: True)] == [1]


@given(count=st.integers(0, 12), cuts=st.lists(st.integers(0, 3), max_size=2), after=st.integers(0, 5))
def test_every_event_arrives_once_and_in_order_whatever_breaks(count: int, cuts: list[int], after: int) -> None:
    events = [event(number) for number in range(1, count + 1)]
    events.append(event(max(count, after) + 1, state="CANCELED"))
    script = Script(events, cuts)
    found = [got.id for got in EventStream(script, lambda: False, after, pause=0.001)]
    assert found == [wanted.id for wanted in events if wanted.id > after]
    assert script.asked[0] == after
    assert script.asked == sorted(script.asked)


def test_a_master_that_stays_away_is_an_error() -> None:
    stream = EventStream(Script([], [0] * 100), lambda: False, patience=0.02, pause=0.001)
    with pytest.raises(MasterUnreachableError, match="away"):
        next(stream)


def test_closing_ends_a_wait_from_another_thread() -> None:
    opened, closed = threading.Event(), threading.Event()

    class Silent:
        def lines(self) -> Iterator[str]:
            opened.set()
            closed.wait(30)
            yield from ()

        def close(self) -> None:
            closed.set()

    stream = EventStream(lambda after: Silent(), lambda: False)
    thread = threading.Thread(target=lambda: list(stream))
    thread.start()
    assert opened.wait(30)
    stream.close()
    thread.join(30)
    assert not thread.is_alive()


class EventfulSource(MadeSource):
    """An experiment whose events are given."""

    def __init__(self, events: list[rest.Event | Exception]) -> None:
        super().__init__(make_experiment().detail())
        self.given = events
        self.may_end = threading.Event()

    def events(self, experiment_id: int, after: int = 0) -> Iterator[rest.Event]:
        for found in self.given:
            if isinstance(found, Exception):
                raise found
            if found.id == 99:
                assert self.may_end.wait(30)
                self.write(state=ExperimentState.COMPLETED)
            yield found


class Seen(PlainProgress):
    def __init__(self, source: EventfulSource | None = None) -> None:
        self.lines: list[str] = []
        self.fractions: list[float] = []
        self.source = source

    def update(self, fraction: float, text: str) -> None:
        self.fractions.append(fraction)
        if self.source is not None:
            self.source.may_end.set()

    def message(self, text: str) -> None:
        self.lines.append(text)


def active_source(events: list[rest.Event | Exception]) -> EventfulSource:
    source = EventfulSource(events)
    source.write(state=ExperimentState.ACTIVE, progress=0.0)
    source.write_trial(trial_row(1, {}, 4))
    return source


def typed(number: int, kind: str, data: dict[str, object]) -> rest.Event:
    return rest.Event.model_validate({"id": number, "type": kind, "experiment_id": 1, "trial_id": 1, "data": data})


def test_waiting_shows_progress_and_errors_at_once() -> None:
    error = rest.UserErrorInfo(
        type="ValueError", message="bad", traceback="  cell [3], line 2\nValueError: bad", cell=3, line=2, batch=2
    )
    done = experiment(ExperimentState.COMPLETED).model_dump(mode="json")
    source = active_source(
        [
            typed(5, "metrics", {"kind": "training", "batch": 2, "metrics": {"loss": 0.5}}),
            typed(6, "error", error.model_dump(mode="json")),
            typed(7, "error", error.model_dump(mode="json")),
            typed(8, "error", error.model_dump(mode="json")).model_copy(update={"trial_id": 2}),
            typed(99, "experiment", done),
        ]
    )
    view = Seen(source)
    shown: set[str] = set()
    assert waiting.wait(source, 1, view, shown=shown) == 99
    assert shown == {error.traceback}
    failed = source.experiment(1).model_copy(update={"state": ExperimentState.ERROR, "error": error})
    with pytest.raises(UserCodeError) as caught:
        waiting.raise_failure(source, 1, failed, shown)
    said = "Experiment 1 failed in cell [3], line 2: ValueError: bad (the traceback is above)"
    assert str(caught.value) == said
    assert (caught.value.cell, caught.value.line, caught.value.traceback) == (3, 2, error.traceback)
    assert view.fractions == [0.0, 0.5, 0.5, 0.5, 0.5, 1.0]
    assert view.lines == [
        "Trial 1 failed at batch 2, in cell [3], line 2:\n  cell [3], line 2\nValueError: bad",
        "Trial 1 failed again at batch 2, in cell [3], line 2, in the same way.",
        "Trial 2 failed at batch 2, in cell [3], line 2, in the same way.",
    ]


def test_what_a_bar_held_back_is_shown_when_no_more_events_come() -> None:
    class HeldBack(Seen):
        def flush(self) -> None:
            self.lines.append(f"shown at {self.fractions[-1]}")
            source.may_end.set()

    source = active_source(
        [
            typed(5, "metrics", {"kind": "training", "batch": 1, "metrics": {"loss": 0.5}}),
            typed(6, "metrics", {"kind": "training", "batch": 2, "metrics": {"loss": 0.5}}),
            typed(99, "experiment", experiment(ExperimentState.COMPLETED).model_dump(mode="json")),
        ]
    )
    view = HeldBack()
    waiting.wait(source, 1, view, timeout=30)
    assert view.lines == ["shown at 0.5"]


def test_an_error_of_the_reading_thread_is_raised_where_it_is_waited() -> None:
    source = active_source([MasterUnreachableError("gone")])
    with pytest.raises(MasterUnreachableError, match="gone"):
        waiting.wait(source, 1, Seen())


def test_ctrl_c_leaves_the_experiment_running_and_says_so() -> None:
    class Interrupted(Seen):
        def update(self, fraction: float, text: str) -> None:
            if fraction > 0:
                raise KeyboardInterrupt

    source = active_source([typed(5, "metrics", {"kind": "training", "batch": 2, "metrics": {}})])
    view = Interrupted()
    with pytest.raises(KeyboardInterrupt):
        waiting.wait(source, 1, view)
    assert source.experiment(1).state is ExperimentState.ACTIVE
    assert "goes on running" in view.lines[0]


def test_feed_gives_up_in_time_and_leaves_no_thread() -> None:
    source = source_of(make_experiment())
    source.write(state=ExperimentState.ACTIVE)
    with EventFeed(source, 1) as feed, pytest.raises(TimeoutError):
        feed.next(0.01)


def test_progress_of_a_search_counts_all_trials() -> None:
    progress = ExperimentProgress(experiment(ExperimentState.ACTIVE, trials=4))
    trial = make_experiment().trials[0].detail()
    progress.update_trials(
        [trial, trial.model_copy(update={"id": 2, "state": TrialState.RUNNING, "batches": 1, "target_batches": 2})]
    )
    assert progress.fraction == pytest.approx(1.5 / 4)
    assert "1/4 trials" in progress.text


def test_of_many_metrics_the_searchers_own_is_shown_first() -> None:
    progress = ExperimentProgress(experiment(ExperimentState.ACTIVE, metric="val_accuracy"))
    row = {"loss": 0.1, "accuracy": 0.2, "val_loss": 0.3, "val_accuracy": 0.4}
    progress.apply(rest.Event(id=9, type="metrics", experiment_id=1, trial_id=1, data={"batch": 3, "metrics": row}))
    assert progress.text.endswith("val_accuracy 0.4, loss 0.1, accuracy 0.2")
    progress.apply(rest.Event(id=10, type="metrics", experiment_id=1, trial_id=1, data={"metrics": {"loss": 2.2e-8}}))
    assert "loss 2.2e-8" in progress.text, "as in the live view"


def test_an_event_that_is_stored_nowhere_is_heard_and_moves_no_stream() -> None:
    script = Script([], [None])
    sent = [event(7), event(0), event(0, state="PAUSED"), event(8, state="COMPLETED")]
    stream = EventStream(lambda after: ScriptedConnection(script, sent, broken=False), lambda: False, after=5)
    assert [one.id for one in stream] == [7, 0, 0, 8]
