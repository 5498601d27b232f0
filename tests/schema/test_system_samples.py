"""Samples of what a trial uses: thinned without losing peaks, and handed over between its processes."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from det_native.schema.ranks import rank_folder
from det_native.schema.rest import SystemSample
from det_native.schema.system_samples import (
    FILE_NAME,
    LeftSamples,
    Weighed,
    left_samples,
    only_new,
    thin,
    thin_by_rank,
)


def sample(time: float, rank: int = 0, **metrics: float) -> SystemSample:
    return SystemSample(time=time, rank=rank, metrics=metrics)


def test_few_samples_stay_as_they_are() -> None:
    few = [Weighed(sample(time, cpu_percent=time)) for time in range(5)]
    assert thin(few, 5) == few


def test_neighbours_are_merged_to_their_mean_and_memory_to_its_peak() -> None:
    samples = [Weighed(sample(t, cpu_percent=t, memory_bytes=100 - t, gpu0_memory_bytes=t)) for t in range(4)]
    assert [(each.sample.time, each.sample.metrics, each.count) for each in thin(samples, 2)] == [
        (1.0, {"cpu_percent": 0.5, "memory_bytes": 100.0, "gpu0_memory_bytes": 1.0}, 2),
        (3.0, {"cpu_percent": 2.5, "memory_bytes": 98.0, "gpu0_memory_bytes": 3.0}, 2),
    ]


def test_what_was_not_measured_counts_for_nothing() -> None:
    samples = [Weighed(sample(0, cpu_percent=10)), Weighed(sample(1)), Weighed(sample(2, gpu0_percent=7))]
    (merged,) = thin(samples, 1)
    assert merged.sample.metrics == {"cpu_percent": 10.0, "gpu0_percent": 7.0}


def test_merged_samples_weigh_as_much_as_all_that_they_are_of() -> None:
    samples = [Weighed(sample(0, cpu_percent=100), count=9), Weighed(sample(1, cpu_percent=0), run=2)]
    (merged,) = thin(samples, 1)
    assert (merged.sample.metrics, merged.count, merged.run) == ({"cpu_percent": 90.0}, 10, 2)


@given(st.lists(st.floats(0.001, 1e4), min_size=1, max_size=300), st.lists(st.integers(2, 50), min_size=1, max_size=4))
def test_thinned_again_and_again_nothing_is_lost(steps: list[float], limits: list[int]) -> None:
    time, samples = 0.0, []
    for step in steps:
        time += step
        samples.append(Weighed(sample(time, cpu_percent=step, memory_bytes=step)))
    thinned = samples
    for limit in sorted(limits, reverse=True):
        thinned = thin(thinned, limit)
        assert len(thinned) <= limit
    assert sum(each.count for each in thinned) == len(samples)
    assert thinned[-1].sample.time == samples[-1].sample.time
    assert max(each.sample.metrics["memory_bytes"] for each in thinned) == max(steps)
    total = sum(each.sample.metrics["cpu_percent"] * each.count for each in thinned)
    assert total == pytest.approx(sum(steps))


def test_each_process_is_thinned_by_itself() -> None:
    samples = [sample(time, rank, cpu_percent=rank) for time in range(100) for rank in (0, 1)]
    thinned = thin_by_rank(samples, 10)
    assert [each.rank for each in thinned].count(1) == 10
    assert [each.time for each in thinned] == sorted(each.time for each in thinned)
    assert {each.metrics["cpu_percent"] for each in thinned if each.rank == 1} == {1.0}


def test_a_process_leaves_its_last_samples_for_the_first_one(tmp_path: Path) -> None:
    folder = rank_folder(tmp_path, 1)
    folder.mkdir()
    left = LeftSamples(folder)
    for time in range(250):
        left.add(sample(time, 1, cpu_percent=time))
    found = left_samples(tmp_path, 3)  # rank 2 has left nothing
    assert [each.time for each in found] == list(range(150, 250))
    assert [path.name for path in folder.iterdir()] == [FILE_NAME]


def test_a_file_that_is_none_is_passed_over(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder = rank_folder(tmp_path, 1)
    folder.mkdir()
    (folder / FILE_NAME).write_text("[{")
    assert left_samples(tmp_path, 2) == []
    assert "cannot be read" in caplog.text


def test_samples_that_come_again_are_told_once() -> None:
    seen: dict[int, float] = {}
    first = [sample(1, 0), sample(1, 1)]
    assert only_new(first, seen) == first
    assert only_new([*first, sample(2, 1)], seen) == [sample(2, 1)]
    assert seen == {0: 1.0, 1: 2.0}
