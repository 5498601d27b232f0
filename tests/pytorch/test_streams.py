"""Iterable datasets: read in passes that are the same when they are read again, in shards, from any position."""

from __future__ import annotations

import random
from itertools import islice
from typing import Any

import numpy as np
import pytest
import torch
import torch.utils.data as torch_data
from hypothesis import given
from hypothesis import strategies as st

from det_native.errors import TrialDefinitionError
from det_native.pytorch import DataLoader
from det_native.pytorch.data import adapt_data_loader

pytestmark = pytest.mark.slow


class Stream(torch_data.IterableDataset[float]):
    """Numbers with noise from every generator; each loader worker has its own part."""

    def __init__(self, length: int = 23) -> None:
        self.length = length
        self.generator = torch.Generator()

    def __iter__(self) -> Any:
        worker = torch_data.get_worker_info()
        first, step = (0, 1) if worker is None else (worker.id, worker.num_workers)
        own = torch.rand(1, generator=self.generator).item()
        for number in range(first, self.length, step):
            yield 1000 * number + own + random.random() + np.random.rand() + torch.rand(1).item()


class Counted(Stream):
    def __len__(self) -> int:
        return self.length


def values(batches: Any, count: int) -> list[list[float]]:
    return [batch.tolist() for batch in islice(batches, count)]


@given(
    length=st.integers(1, 30),
    batch_size=st.integers(1, 7),
    drop_last=st.booleans(),
    replicas=st.integers(1, 3),
    done=st.integers(0, 25),
)
def test_going_on_from_a_position_is_the_same_as_going_on(
    length: int, batch_size: int, drop_last: bool, replicas: int, done: int
) -> None:
    def loader() -> DataLoader:
        return DataLoader(Stream(length), batch_size=batch_size, drop_last=drop_last)

    if drop_last and length < batch_size:
        with pytest.raises(TrialDefinitionError, match="Stream yields no batches"):
            next(iter(loader().get_data_loader(repeat=True)))
        return
    shards = [iter(loader().get_data_loader(True, 0, replicas, rank, seed=3)) for rank in range(replicas)]
    whole = [values(shard, done) for shard in shards]
    position = shards[0].position if done else None
    for rank in range(replicas):
        again = loader().get_data_loader(True, 0, replicas, rank, seed=3, position=position)
        skipped = loader().get_data_loader(True, done, replicas, rank, seed=3)
        expected = values(shards[rank], 5)
        assert values(iter(again), 5) == expected
        assert values(iter(skipped), 5) == expected
    one = values(iter(loader().get_data_loader(True, seed=3)), done * replicas)
    assert [one[rank::replicas] for rank in range(replicas)] == whole


@pytest.mark.long
def test_with_loader_workers_too_and_passes_differ() -> None:
    def batches(position: Any = None) -> Any:
        # Workers that live on would draw on from the pass before: they are started anew for each pass.
        loader = DataLoader(Counted(12), batch_size=2, num_workers=2, persistent_workers=True)
        return iter(loader.get_data_loader(True, seed=3, position=position))

    whole = batches()
    first = values(whole, 8)
    rest = values(whole, 3)
    assert whole.position == (1, 5)
    again = batches((1, 2))
    assert values(again, 3) == rest
    assert first[:6] != [*first[6:], *rest][:6]
    del whole, again


def test_reading_draws_nothing_from_the_global_generators() -> None:
    states = (random.getstate(), torch.get_rng_state(), np.random.get_state()[1].tolist())
    values(iter(DataLoader(Stream(), batch_size=4).get_data_loader(True)), 9)
    assert random.getstate() == states[0]
    assert torch.equal(torch.get_rng_state(), states[1])
    assert np.random.get_state()[1].tolist() == states[2]


def test_the_length_is_the_datasets() -> None:
    loader = adapt_data_loader(torch_data.DataLoader(Counted(10), batch_size=4), "build_training_data_loader")
    assert loader.iterable
    assert len(loader) == 3
    assert len(loader.get_data_loader(True)) == 3
    assert len(loader.get_data_loader(True, num_replicas=2)) == 2
    with pytest.raises(TypeError, match="has no length"):
        len(DataLoader(Stream()).get_data_loader(True))


def test_for_a_whole_data_set_it_is_torchs_own_loader() -> None:
    loader = DataLoader(Counted(10), batch_size=4).get_data_loader()
    assert isinstance(loader, torch_data.DataLoader)
    assert [len(batch) for batch in loader] == [4, 4, 2]
    sharded = DataLoader(Counted(10), batch_size=4).get_data_loader(num_replicas=2, rank=1)
    assert [len(batch) for batch in sharded] == [4]


def test_the_dataset_is_told_the_pass() -> None:
    class Told(Counted):
        passes: list[int] = []

        def set_epoch(self, epoch: int) -> None:
            self.passes.append(epoch)

    values(iter(DataLoader(Told(4), batch_size=2).get_data_loader(True)), 5)
    assert Told.passes == [0, 1, 2]
