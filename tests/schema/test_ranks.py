"""Who is who among the processes of a run, on one machine and on several."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from det_native.schema.job import CheckJob, TrialJob
from det_native.schema.manifests import BundleManifest, Interpreter, Program
from det_native.schema.ranks import Place, is_shared, placed_rank_jobs, rank_folder, rank_jobs

BUNDLE = BundleManifest(
    protocol=1,
    interpreter=Interpreter(python="3.11", executable="python"),
    program=Program(kind="script", framework="torch", command=("train.py",)),
)
ROLES = {"distributed": {"strategy": "tf_config", "roles": {"chief": 1, "worker": 2, "ps": 1, "evaluator": 1}}}


def job(config: dict[str, object] | None = None, devices: int = 0, threads: int = 8) -> TrialJob:
    return TrialJob(
        protocol=1,
        directory="/home/of/it/runs/R",
        blobs="b",
        bundle=BUNDLE,
        bundle_id="x",
        checkpoints="c",
        run_id="R",
        experiment_id=1,
        trial_id=1,
        config=config or {},
        hparams={},
        trial_seed=1,
        master_url="unix:/of/the/master",
        devices=[str(number) for number in range(devices)],
        threads=threads,
    )


@st.composite
def machines(draw: st.DrawFn) -> list[list[Place]]:
    """Several machines with some places each."""
    sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=5))
    return [
        [
            Place(f"node{node}", f"10.0.0.{node + 1}", [str(number)] if draw(st.booleans()) else [], number + 1)
            for number in range(size)
        ]
        for node, size in enumerate(sizes)
    ]


@given(machines())
def test_every_process_has_its_place_once(given_machines: list[list[Place]]) -> None:
    places = [place for machine in given_machines for place in machine]
    jobs = placed_rank_jobs(job(), places)
    assert len(jobs) == len(places)
    if len(places) == 1:
        assert jobs == [job().model_copy(update={"devices": places[0].devices, "threads": places[0].threads})]
        return
    gangs = [one.gang for one in jobs if one.gang is not None]
    assert [gang.rank for gang in gangs] == list(range(len(places)))
    assert len({(gang.cross_rank, gang.local_rank) for gang in gangs}) == len(places)
    for place, one, gang in zip(places, jobs, gangs, strict=True):
        own = given_machines[gang.cross_rank]
        assert own[gang.local_rank] == place
        assert (gang.size, gang.local_size, gang.cross_size) == (len(places), len(own), len(given_machines))
        assert gang.local_sizes == [len(machine) for machine in given_machines]
        assert gang.address == (place.address if len(given_machines) > 1 else "")
        assert (one.devices, one.threads) == (place.devices, place.threads)
        assert one.directory == str(rank_folder(Path(job().directory), gang.rank))
        assert gang.rendezvous == f"{job().directory}/rendezvous"
        assert (one.slots, one.slots_here) == ([len(machine) for machine in given_machines], len(own))
    same_but = {"gang", "devices", "threads", "directory", "slots"}
    assert {one.model_dump_json(exclude=same_but) for one in jobs} == {job().model_dump_json(exclude=same_but)}


@given(st.integers(1, 6), st.integers(0, 8), st.integers(1, 40))
def test_on_one_machine_it_is_what_the_launcher_there_makes(size: int, devices: int, threads: int) -> None:
    given_job = job(devices=devices, threads=threads)
    share = threads if size == 1 else max(1, threads // size)
    own = [given_job.devices] if size == 1 else [given_job.devices[rank : rank + 1] for rank in range(size)]
    places = [Place("n", "10.0.0.1", devices_of_rank, share) for devices_of_rank in own]
    assert placed_rank_jobs(given_job, places) == rank_jobs(given_job, size)


def test_a_role_without_a_slot_may_be_on_any_machine() -> None:
    nodes = ["a", "b", "b", "a", "a"]  # chief, workers, ps, evaluator
    jobs = placed_rank_jobs(job(ROLES), [Place(node, f"address of {node}") for node in nodes])
    gangs = [one.gang for one in jobs if one.gang is not None]
    assert [gang.role for gang in gangs] == ["chief", "worker 0", "worker 1", "ps 0", "evaluator"]
    assert [(gang.cross_rank, gang.local_rank) for gang in gangs] == [(0, 0), (1, 0), (1, 1), (0, 1), (0, 2)]
    assert Counter(gang.cross_rank for gang in gangs) == {0: 3, 1: 2}


@pytest.mark.parametrize(
    ("places", "words"),
    [
        ([], "no place is given"),
        ([Place("a", "1"), Place("b", "2"), Place("a", "1")], "are not neighbours: a, b, a"),
        ([Place("a", "1"), Place("b", "")], "Machine b needs one address; given are: none"),
        ([Place("a", "1"), Place("b", "2"), Place("b", "3")], "Machine b needs one address; given are: 2, 3"),
    ],
)
def test_places_that_contradict_each_other_are_refused(places: list[Place], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        placed_rank_jobs(job(), places)


def test_a_check_has_one_process() -> None:
    check = CheckJob(protocol=1, directory="x", blobs="", bundle=BUNDLE)
    assert placed_rank_jobs(check, [Place("a", "1")]) == [check]


@pytest.mark.parametrize(
    ("name", "shared"),
    [
        ("rendezvous", True),
        ("rendezvous.failed", True),
        ("roles/address-0", True),
        ("exit.json", True),
        ("rank-1/exit.json", True),
        ("rank-12/system.json", True),
        (".rendezvous.17", False),
        ("roles/.address-0.17", False),
        ("work/exit.json", False),
        ("rank-1/work/exit.json", False),
        ("roles/a/b", False),
        ("output.log", False),
    ],
)
def test_which_files_the_machines_of_a_run_share(name: str, shared: bool) -> None:
    assert is_shared(name) is shared
