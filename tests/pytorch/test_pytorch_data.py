"""Data loaders: order by seed and epoch, shards, skipping, samplers of users, loader workers, nested batches."""

from __future__ import annotations

import random
from collections import namedtuple
from itertools import islice
from typing import Any

import numpy as np
import pytest
import torch
import torch.utils.data as torch_data
from hypothesis import given
from hypothesis import strategies as st
from torch.utils.data.distributed import DistributedSampler

from det_native.errors import InvalidDataError, TrialDefinitionError
from det_native.pytorch import DataLoader, adapt_batch_sampler, data_length, to_device
from det_native.pytorch.data import adapt_data_loader
from det_native.pytorch.samplers import PlainOrder

pytestmark = pytest.mark.slow


class Numbers(torch_data.Dataset[int]):
    def __init__(self, length: int = 23, noise: bool = False) -> None:
        self.length = length
        self.noise = noise

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> Any:
        if self.noise:
            return index + random.random() + np.random.rand() + torch.rand(1).item()
        return index


def first(loader: Any, count: int) -> list[list[float]]:
    return [batch.tolist() for batch in islice(iter(loader), count)]


def training(loader: DataLoader, **arguments: Any) -> Any:
    return loader.get_data_loader(repeat=True, **{"seed": 3, **arguments})


@given(
    records=st.integers(1, 40),
    batch_size=st.one_of(st.none(), st.integers(1, 9)),
    drop_last=st.booleans(),
    shuffle=st.booleans(),
    skip=st.integers(0, 60),
    replicas=st.integers(1, 3),
)
def test_skipping_is_the_same_as_reading(
    records: int, batch_size: int | None, drop_last: bool, shuffle: bool, skip: int, replicas: int
) -> None:
    order = PlainOrder(records, batch_size, drop_last=drop_last, shuffle=shuffle, seed=1)
    if len(order) == 0:
        with pytest.raises(TrialDefinitionError):
            next(iter(adapt_batch_sampler(order, repeat=True)))
        return
    whole = list(islice(iter(adapt_batch_sampler(order, repeat=True)), (skip + 10) * replicas))
    for rank in range(replicas):
        shard = adapt_batch_sampler(order, repeat=True, skip=skip, num_replicas=replicas, rank=rank)
        assert list(islice(iter(shard), 10)) == whole[rank::replicas][skip:]
    epoch = [index for batch in whole[: len(order)] for index in (batch if batch_size is not None else [batch])]
    assert len(set(epoch)) == len(epoch)


def test_epochs_differ_seeds_differ_and_both_repeat() -> None:
    loader = DataLoader(Numbers(), batch_size=23, shuffle=True)
    epochs = first(training(loader), 3)
    assert all(sorted(epoch) == list(range(23)) for epoch in epochs)
    assert epochs[0] != epochs[1] != epochs[2]
    assert first(training(loader), 3) == epochs
    assert first(training(loader, seed=4), 1) != epochs[:1]


def test_loading_draws_nothing_from_the_global_generators() -> None:
    loader = DataLoader(Numbers(), batch_size=5, shuffle=True)
    weighted = DataLoader(Numbers(), batch_size=5, sampler=torch_data.WeightedRandomSampler([1.0] * 23, 23))
    states = (random.getstate(), torch.get_rng_state(), np.random.get_state()[1].tolist())
    first(training(loader), 9), first(training(weighted), 9), list(weighted.get_data_loader(seed=1))
    assert random.getstate() == states[0]
    assert torch.equal(torch.get_rng_state(), states[1])
    assert np.random.get_state()[1].tolist() == states[2]


class Chaotic(torch_data.Sampler[int]):
    """Draws from all global generators, lazily."""

    def __len__(self) -> int:
        return 400

    def __iter__(self) -> Any:
        for _ in range(400):
            yield int(random.random() * 7 + np.random.rand() * 7 + torch.rand(1).item() * 7)


@pytest.mark.parametrize(
    "sampler",
    [
        torch_data.WeightedRandomSampler([1.0] * 23, 50),
        torch_data.WeightedRandomSampler([1.0] * 23, 50, generator=torch.Generator().manual_seed(8)),
        torch_data.RandomSampler(range(23), replacement=True, num_samples=400),
        Chaotic(),
    ],
)
def test_a_sampler_of_the_users_is_exact_too(sampler: Any) -> None:
    loader = DataLoader(Numbers(), batch_size=2, sampler=sampler)
    whole = first(training(loader), 450)
    random.seed(77), torch.manual_seed(77)
    assert first(training(loader, skip=333), 117) == whole[333:]
    assert whole[: len(loader)] != whole[len(loader) : 2 * len(loader)]


def test_augmentation_in_loader_workers_does_not_depend_on_where_they_start() -> None:
    loader = DataLoader(Numbers(noise=True), batch_size=4, shuffle=True, num_workers=2)
    whole = first(training(loader), 9)
    assert first(training(loader, skip=5), 4) == whole[5:]
    assert len({value for batch in whole for value in batch}) == sum(len(batch) for batch in whole)


class Opened(Numbers):
    """Opened in each loader worker, as files are that cannot be shared."""

    factor = 0

    def __getitem__(self, index: int) -> Any:
        return index * self.factor


def open_in_worker(worker: int) -> None:
    information = torch_data.get_worker_info()
    assert information is not None
    assert type(information.dataset) is Opened
    information.dataset.factor = 10


def test_a_loader_worker_is_begun_with_the_users_own_dataset() -> None:
    loader = DataLoader(Opened(), batch_size=3, num_workers=1, worker_init_fn=open_in_worker)
    assert first(training(loader), 2) == [[0, 10, 20], [30, 40, 50]]


def test_a_torch_loader_is_adapted_with_its_settings() -> None:
    def collate(items: list[int]) -> torch.Tensor:
        return torch.tensor(items) * 10

    given_loader = torch_data.DataLoader(Numbers(), batch_size=5, shuffle=True, drop_last=True, collate_fn=collate)
    adapted = adapt_data_loader(given_loader, "build_training_data_loader")
    loader = training(adapted)
    assert len(loader) == len(given_loader) == 4
    batches = first(loader, 8)
    assert all(len(batch) == 5 and value % 10 == 0 for batch in batches for value in batch)
    assert first(training(adapted, skip=6), 2) == batches[6:]


def test_by_itself_it_is_torchs_own() -> None:
    loader = DataLoader(Numbers(), 5, False, None, None, 0, None, False, True)
    assert len(loader) == 4
    assert [batch.tolist() for batch in loader] == [list(range(n, n + 5)) for n in range(0, 20, 5)]
    assert DataLoader(Numbers(), batch_sampler=[[1, 2], [3]]).batch_size is None
    with pytest.raises(ValueError, match="mutually exclusive"):
        DataLoader(Numbers(), batch_size=3, batch_sampler=[[1]])


def test_it_has_torchs_arguments_and_attributes() -> None:
    generator = torch.Generator().manual_seed(3)
    arguments = (Numbers(), 4, True, None, None, 0, None, False, True, 0, None, None, generator)
    ours = DataLoader(*arguments, prefetch_factor=None, in_order=True)
    drawn = [batch.tolist() for batch in ours]
    generator.manual_seed(3)
    assert drawn == [batch.tolist() for batch in torch_data.DataLoader(*arguments)]
    assert (ours.drop_last, ours.num_workers, ours.generator) == (True, 0, generator)
    assert isinstance(ours.sampler, torch_data.RandomSampler)
    with pytest.raises(AttributeError, match="nonsense"):
        ours.nonsense  # noqa: B018 (the access is the test)


def test_what_moves_by_itself_and_what_has_no_tensor() -> None:
    class Own(dict[str, Any]):
        def to(self, device: torch.device) -> str:
            return f"on {device}"

    moved = to_device({"own": Own(a=1), "names": np.array(["a", "b"]), "text": "t"}, torch.device("cpu"))
    assert moved["own"] == "on cpu"
    assert moved["names"].tolist() == ["a", "b"]
    assert isinstance(moved["names"], np.ndarray)


def test_without_automatic_batching() -> None:
    loader = DataLoader(Numbers(3), batch_size=None, shuffle=True)
    items = list(islice(iter(training(loader)), 6))
    assert sorted(items[:3]) == sorted(items[3:]) == [0, 1, 2]


def test_what_cannot_be_loaded_is_refused() -> None:
    with pytest.raises(InvalidDataError, match="int lacks"):
        DataLoader(3)
    with pytest.raises(InvalidDataError, match=r"build_validation_data_loader\(\) must return"):
        adapt_data_loader([1, 2], "build_validation_data_loader")
    share = DistributedSampler(Numbers(), num_replicas=2, rank=0)
    in_batches = torch_data.BatchSampler(share, 4, drop_last=False)
    for shared in (DataLoader(Numbers(), sampler=share), torch_data.DataLoader(Numbers(), batch_sampler=in_batches)):
        with pytest.raises(InvalidDataError, match=r"Mine\.build\(\) returned a loader with a DistributedSampler"):
            adapt_data_loader(shared, "Mine.build")
    whole = DataLoader(Numbers(), sampler=DistributedSampler(Numbers(), num_replicas=1, rank=0))
    assert adapt_data_loader(whole, "Mine.build") is whole


Pair = namedtuple("Pair", "x y")


def test_batches_of_any_nesting_become_tensors_in_place() -> None:
    batch = {
        "data": [{"a": np.ones((4, 2), dtype=np.float32)}, (torch.zeros(4), "name")],
        "pair": Pair(torch.ones(4), np.arange(4)),
        "n": 3,
    }
    moved = to_device(batch, torch.device("cpu"))
    assert isinstance(moved["data"][0]["a"], torch.Tensor)
    assert isinstance(moved["data"][1], tuple)
    assert moved["data"][1][1] == "name"
    assert isinstance(moved["pair"], Pair)
    assert moved["pair"].y.tolist() == [0, 1, 2, 3]
    assert moved["n"] == 3
    assert data_length(moved) == data_length(batch) == 4
    with pytest.raises(InvalidDataError, match="no tensor"):
        data_length({"a": ["text", 3]})


def test_packed_sequences_are_as_many_records_as_they_are_sequences() -> None:
    packed = torch.nn.utils.rnn.pack_sequence([torch.ones(length, 2) for length in (5, 3, 1)])
    assert data_length(packed) == data_length({"texts": packed}) == 3
