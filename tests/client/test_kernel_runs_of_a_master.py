"""A run that trains in a kernel, as the client reads, ends and forks it: an experiment as any other."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner
from kernel_parts import KernelWorker, kernel_run, process_facts, sleeping_process
from master_parts import Master, manifest

import det_native as det
from det_native.client.command import cli
from det_native.errors import ArgumentError, DetError
from det_native.schema.states import ExperimentState

pytestmark = pytest.mark.slow  # a whole master


@pytest.fixture
def worker(named_master: Master, tmp_path: Path) -> Iterator[KernelWorker]:
    """Have a kernel train, whose program was not kept."""
    with sleeping_process() as process:
        asked = kernel_run(tmp_path / "home", process_facts(process.pid), no_program="Cell [2] was changed.")
        found = KernelWorker(named_master, asked)
        found.start()
        found.train(1, 100)
        yield found


def run(*words: object) -> str:
    done = CliRunner().invoke(cli, ["experiment", *map(str, words)])
    return done.output + str(done.exception or "")


def test_it_is_listed_described_and_stopped_with_all_others(worker: KernelWorker) -> None:
    number = worker.experiment_id
    [found] = det.experiments()
    assert (found.id, found.state, found.detail().in_kernel) == (number, ExperimentState.ACTIVE, True)
    assert "trains in   a kernel\n" in run("describe", number)
    assert "kernel" in run("pause", number)
    assert det.attach(number).state is ExperimentState.ACTIVE
    said = run("stop", number)
    assert said == f"Experiment {number} trains in a kernel: it ends after the batch under way.\n"
    assert worker.validate(100, loss=0.5).stop


def test_what_needs_its_program_says_why_there_is_none(worker: KernelWorker) -> None:
    worker.exit(batch=100)
    for asked in (det.attach(worker.experiment_id).fork, det.attach(worker.experiment_id).move):
        with pytest.raises(DetError, match=r"Cell \[2\] was changed"):
            asked()


def test_only_what_trains_in_a_kernel_is_moved(named_master: Master) -> None:
    number = named_master.create({"name": "there"})["id"]
    with pytest.raises(ArgumentError, match="is on a cluster already: fork"):
        det.attach(number).move()


def test_its_program_goes_to_the_cluster_with_what_people_wrote(named_master: Master, tmp_path: Path) -> None:
    with sleeping_process() as process:
        bundle_id = named_master.bundle()
        asked = kernel_run(tmp_path / "home", process_facts(process.pid), bundle_id=bundle_id)
        worker = KernelWorker(named_master, asked)
        worker.complete(400)
    tried = det.attach(worker.experiment_id)
    tried.add_labels("tried")
    moved = tried.move(config={"max_restarts": 0})
    assert (moved.detail().in_kernel, moved.labels, moved.config["max_restarts"]) == (False, ["tried"], 0)
    assert moved.detail().bundle_id == manifest().id == bundle_id
