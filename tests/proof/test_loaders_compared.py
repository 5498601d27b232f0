"""What is compared of a PyTorch loader: its data are an input of their own, its way through them another."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils.data import DataLoader, TensorDataset, WeightedRandomSampler

from det_native.proof.content import content_of
from det_native.pytorch.native_call import loader_settings

DATA = TensorDataset(torch.arange(6))


def _other(one: list[Any]) -> Any:
    return one[0]


def _content(**settings: Any) -> Any:
    return content_of(loader_settings(DataLoader(DATA, **settings)))


def _weighted(last: float) -> Any:
    return WeightedRandomSampler([1.0, 1, 1, 1, 1, last], 6)


def test_how_a_loader_picks_records_is_compared_and_the_size_of_batches_is_the_configurations() -> None:
    first = _content(batch_size=2, shuffle=True)
    assert _content(batch_size=3, shuffle=True, num_workers=2) == first
    used = DataLoader(DATA, batch_size=2, shuffle=True)
    list(used)
    assert content_of(loader_settings(used)) == first
    assert _content(batch_size=2) != first
    assert _content(batch_size=2, shuffle=True, drop_last=True) != first
    assert _content(batch_size=2, shuffle=True, collate_fn=_other) != first
    assert _content(sampler=_weighted(1)) == _content(sampler=_weighted(1)) != _content(sampler=_weighted(9))
