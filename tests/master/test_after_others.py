"""An experiment that comes after others begins once they have completed, and never before."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from master_parts import Master, Worker, configuration

from det_native import PROTOCOL
from det_native.errors import ConfigurationError
from det_native.master.flow.after import earlier_of
from det_native.schema.config import ExperimentConfig
from det_native.schema.loading import load_config
from det_native.schema.states import ExitReason, ExperimentState


def worker_of(master: Master, count: int) -> Worker:
    worker = Worker(master, master.world.wait_for_jobs(count)[-1])
    worker.start()
    return worker


def complete(master: Master, worker: Worker) -> None:
    worker.complete()
    master.launcher.end(worker.job.run_id, 0)


def refused(master: Master, after: Any) -> str:
    body = {"protocol": PROTOCOL, "config": configuration(after=after), "bundle_id": master.bundle()}
    answer = master.client.post("/api/v1/experiments", json=body)
    assert answer.status_code in (400, 404, 422), answer.text
    return str(answer.json())


def test_it_waits_with_a_word_and_begins_when_the_others_have_completed(master: Master) -> None:
    first, second = master.create(), master.create()
    workers = [Worker(master, job) for job in master.world.wait_for_jobs(2)]
    later = master.create({"after": [first["id"], second["id"]]})
    path = f"/experiments/{later['id']}"
    waits = f"experiment {first['id']}, which is Running and experiment {second['id']}, which is Running"
    master.until(path, lambda found: found["waits_for"] == waits)
    by_id = {worker.job.experiment_id: worker for worker in workers}
    by_id[first["id"]].start()
    complete(master, by_id[first["id"]])
    master.until(path, lambda found: found["waits_for"] == f"experiment {second['id']}, which is Running")
    assert len(master.world.jobs) == 2  # a slot is free, and it has not begun
    by_id[second["id"]].start()
    complete(master, by_id[second["id"]])
    begun = master.world.wait_for_jobs(3)[-1]
    assert begun.experiment_id == later["id"]
    master.until(path, lambda found: not found["waits_for"])
    third = Worker(master, begun)
    third.start()
    complete(master, third)
    master.until_state(later["id"], "COMPLETED")


@pytest.mark.parametrize("how", ["fails", "is stopped"])
def test_it_ends_with_a_sentence_if_the_other_does_not_complete(master: Master, how: str) -> None:
    first = master.create({"max_restarts": 0})
    worker = worker_of(master, 1)
    later = master.create({"after": first["id"]})
    last = master.create({"after": later["id"]})
    if how == "fails":
        worker.exit(ExitReason.USER_ERROR, message="bad")
        master.launcher.end(worker.job.run_id, 1)
    else:
        master.client.post(f"/api/v1/experiments/{first['id']}/kill")
    found = master.until_state(later["id"], "ERROR")
    word = "has failed" if how == "fails" else "was stopped"
    assert found["error"]["message"] == (
        f"It was to begin after another one, and cannot: experiment {first['id']} {word}."
    )
    assert f"experiment {later['id']} has failed" in master.until_state(last["id"], "ERROR")["error"]["message"]
    assert len(master.world.jobs) == 1


def test_what_cannot_come_true_is_refused_at_submit(master: Master) -> None:
    first = master.create()
    worker_of(master, 1)
    assert "after: there is no experiment 99" in refused(master, 99)
    master.client.post(f"/api/v1/experiments/{first['id']}/kill")
    master.until_state(first["id"], "CANCELED")
    assert f"after: experiment {first['id']} was stopped: leave it out" in refused(master, [first["id"]])
    assert "'experiment 7' or 'experiments 7, 9', not 'seven'" in refused(master, "seven")
    assert "after: there is no experiment 98" in refused(master, "experiment 98")


def test_one_after_what_has_completed_already_begins_at_once(master: Master) -> None:
    first = master.create()
    complete(master, worker_of(master, 1))
    master.until_state(first["id"], "COMPLETED")
    later = master.create({"after": [first["id"]]})
    assert master.world.wait_for_jobs(2)[-1].experiment_id == later["id"]


@given(st.dictionaries(st.integers(1, 6), st.sampled_from(ExperimentState)), st.lists(st.integers(1, 6), min_size=1))
def test_it_may_begin_only_when_all_have_completed(states: dict[int, ExperimentState], after: list[int]) -> None:
    found = earlier_of(after, states)
    may = not found.refused and not found.waits_for
    assert may == all(states.get(number) is ExperimentState.COMPLETED for number in after)
    if found.refused:
        assert any(str(number) in found.refused for number in after)


@pytest.mark.parametrize(
    ("said", "numbers"),
    [
        (7, [7]),
        ([7, 9], [7, 9]),
        ("7", [7]),
        ("experiment 7", [7]),
        ("Experiment 7", [7]),
        ("7, 9", [7, 9]),
        ("experiments 7, 9", [7, 9]),
        (" experiments 7,9 and 12 ", [7, 9, 12]),
        (["experiment 7", "9", 11], [7, 9, 11]),
        ([], []),
    ],
)
def test_experiments_are_named_by_numbers_or_in_words(said: object, numbers: list[int]) -> None:
    loaded = load_config(configuration(after=said))
    assert loaded.after == numbers
    assert ExperimentConfig.model_validate(loaded.model_dump(mode="json")) == loaded


@pytest.mark.parametrize("said", ["", "seven", "experiment", "experiment7", "local-3", "7 9", "7.2", ["x"], "0", "-1"])
def test_a_text_that_names_no_experiment_is_refused_with_what_is_taken(said: object) -> None:
    with pytest.raises(ConfigurationError) as caught:
        load_config(configuration(after=said))
    (problem,) = caught.value.problems
    wrong = said[0] if isinstance(said, list) else said
    assert str(problem) == (
        "after: must be the number of an experiment on the cluster, several of them, or a text such as "
        f"'experiment 7' or 'experiments 7, 9', not {wrong!r}."
    )
