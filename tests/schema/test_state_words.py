"""States in Python are the words that are shown; what is stored and sent keeps Determined's names."""

from __future__ import annotations

import json

import pandas
import pytest
from pydantic import TypeAdapter

from det_native.schema.states import ExperimentState, TrialState

WORDS = [
    (ExperimentState.COMPLETED, "Completed", "COMPLETED"),
    (ExperimentState.CANCELED, "Stopped", "CANCELED"),
    (ExperimentState.ERROR, "Failed", "ERROR"),
    (ExperimentState.ACTIVE, "Running", "ACTIVE"),
    (ExperimentState.QUEUED, "Queued", "QUEUED"),
    (TrialState.RUNNING, "Running", "RUNNING"),
    (TrialState.CANCELED, "Stopped", "CANCELED"),
    (TrialState.ERROR, "Failed", "ERROR"),
]


@pytest.mark.parametrize(("state", "word", "name"), WORDS)
def test_a_state_is_its_word(state: ExperimentState | TrialState, word: str, name: str) -> None:
    assert isinstance(state, str)
    assert state == word
    assert word == state
    assert (state != word) is False
    assert (word != state) is False
    assert state != "Other"
    assert state in ("Other", word)
    assert state in {"Other", word}
    assert state not in ("Other", word.upper())
    assert {word: 7}[state] == {state: 7}[word] == 7  # type: ignore[index]
    assert hash(state) == hash(word)
    assert (str(state), f"{state}", f"{state:>10}", "%s" % state, repr(state)) == (  # noqa: UP031
        word,
        word,
        f"{word:>10}",
        word,
        f"'{word}'",
    )
    assert "".join([state, state.lower()]) == word + word.lower()
    assert json.dumps({state: [state]}) == f'{{"{word}": ["{word}"]}}'
    assert state.name == name


@pytest.mark.parametrize(("state", "word", "name"), WORDS)
def test_a_column_of_states_is_one_of_words(state: ExperimentState | TrialState, word: str, name: str) -> None:
    table = pandas.DataFrame({"state": [state, type(state).PAUSED if word == "Queued" else type(state).QUEUED]})  # type: ignore[union-attr]
    assert list(table["state"] == word) == list(~(table["state"] != word)) == [True, False]
    assert list(table["state"].isin([word])) == [True, False]
    assert table["state"].value_counts()[word] == 1
    assert len(table.groupby("state").get_group(word)) == 1  # type: ignore[arg-type]
    assert len(table.merge(pandas.DataFrame({"state": [word]}), on="state")) == 1
    assert word in str(table)
    assert table.to_csv(index=False).splitlines()[1] == word
    assert json.loads(table.to_json())["state"]["0"] == word


def test_a_loop_until_a_state_ends() -> None:
    states = iter([ExperimentState.QUEUED, ExperimentState.ACTIVE, ExperimentState.COMPLETED])
    seen = 0
    while next(states) != "Completed":
        seen += 1
    assert seen == 2


@pytest.mark.parametrize(("state", "word", "name"), WORDS)
def test_what_is_sent_and_kept_has_the_name(state: ExperimentState | TrialState, word: str, name: str) -> None:
    adapter = TypeAdapter(type(state))
    assert adapter.dump_json(state) == f'"{name}"'.encode()
    assert adapter.dump_python(state, mode="json") == name
    assert adapter.dump_python(state) is adapter.validate_json(f'"{name}"') is adapter.validate_python(word) is state
    for mode in ("validation", "serialization"):
        assert adapter.json_schema(mode=mode)["enum"] == [each.name for each in type(state)]  # type: ignore[arg-type]


def test_a_state_is_found_by_either_name() -> None:
    assert ExperimentState("stopped") is ExperimentState("CANCELED") is ExperimentState.CANCELED
    assert TrialState("Failed") is TrialState.ERROR
    with pytest.raises(ValueError, match="halted"):
        ExperimentState("halted")
    with pytest.raises(ValueError, match="7"):
        ExperimentState(7)
