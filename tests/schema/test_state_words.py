"""States: one word for each, and Determined's names are still taken."""

from __future__ import annotations

import json

import pytest

from det_native.schema.states import ExperimentState, TrialState


@pytest.mark.parametrize(
    ("state", "word", "name"),
    [
        (ExperimentState.COMPLETED, "Completed", "COMPLETED"),
        (ExperimentState.CANCELED, "Stopped", "CANCELED"),
        (ExperimentState.ERROR, "Failed", "ERROR"),
        (ExperimentState.ACTIVE, "Running", "ACTIVE"),
        (ExperimentState.QUEUED, "Queued", "ACTIVE"),
        (TrialState.CANCELED, "Stopped", "CANCELED"),
        (TrialState.ERROR, "Failed", "ERROR"),
    ],
)
def test_a_state_is_shown_by_its_word_and_equal_to_both(
    state: ExperimentState | TrialState, word: str, name: str
) -> None:
    assert (str(state), f"{state:>10}", repr(state)) == (word, f"{word:>10}", f"'{word}'")
    assert state == word
    assert word == state
    assert state == word.lower()
    assert state in ("Other", name)
    assert state != "Other"
    assert json.loads(json.dumps(state)) == state.value, "what is sent keeps its name"


def test_a_state_is_found_by_either_name() -> None:
    assert ExperimentState("stopped") is ExperimentState("CANCELED") is ExperimentState.CANCELED
    assert TrialState("Failed") is TrialState.ERROR
    with pytest.raises(ValueError, match="halted"):
        ExperimentState("halted")


def test_different_states_are_not_equal() -> None:
    assert len({*ExperimentState}) == len(ExperimentState)
    for one in ExperimentState:
        assert [other for other in ExperimentState if other.value == one.value] == [one]
