"""Progress bars: what is drawn at once, what is held back, and that nothing stays held back."""

from __future__ import annotations

from typing import Any

import pytest

from det_native.display import progress
from det_native.display.progress import NotebookProgress, TqdmProgress


class Shown:
    """What a notebook shows: each text in its order."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def display(self, data: dict[str, Any], **_: Any) -> Shown:
        self.update(data)
        return self

    def update(self, data: dict[str, Any], **_: Any) -> None:
        self.texts.append(data["text/plain"])


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> Shown:
    made = Shown()
    monkeypatch.setattr("IPython.display.display", made.display)
    return made


class Clock:
    """Seconds that pass when the test says so."""

    now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(progress, "time", made)
    return made


def test_a_notebook_is_not_flooded_and_still_gets_the_last_word(shown: Shown, clock: Clock) -> None:
    bar = NotebookProgress("Experiment 1")
    for batch in range(20):
        bar.update(batch / 20, f"batch {batch}")
        clock.now += 1 / 16
    assert shown.texts[1:] == [f"Experiment 1: {batch * 5}% batch {batch}" for batch in (4, 8, 12, 16)]
    bar.flush()
    bar.flush()
    assert shown.texts[5:] == ["Experiment 1: 95% batch 19"]
    bar.close()


def test_what_is_told_right_after_the_bar_appeared_is_not_lost(shown: Shown, clock: Clock) -> None:
    bar = NotebookProgress("Experiment 1")
    bar.update(0.0, "running")
    assert shown.texts == ["Experiment 1: 0%"]
    bar.flush()
    assert shown.texts[1:] == ["Experiment 1: 0% running"]
    bar.close()


def test_a_terminal_gets_the_last_word_too(clock: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    bar = TqdmProgress("Experiment 1")
    bar.update(0.1, "first")
    bar.update(0.2, "second")
    assert "second" not in capsys.readouterr().err
    bar.flush()
    assert "second" in capsys.readouterr().err
    bar.close()
