"""Modules whose ``train()`` does more than to set the mode are what they were after a validation."""

from __future__ import annotations

from typing import Any

import pytest
from det_harness.frameworks.torch.modes import evaluating
from torch import nn

pytestmark = pytest.mark.slow


class Merging(nn.Linear):
    """Adds what is trained to its weight for the evaluation, and takes it out again, as layers of LoRA do."""

    def __init__(self) -> None:
        super().__init__(2, 2)
        self.merged = False

    def train(self, mode: bool = True) -> Any:
        super().train(mode)
        self.merged = not mode
        return self


def test_what_a_module_does_on_its_way_to_the_evaluation_it_undoes_on_its_way_back() -> None:
    frozen, trained = Merging().eval(), Merging()
    shared = nn.Dropout()
    model = nn.Sequential(trained, nn.Sequential(frozen, shared), nn.Sequential(shared, nn.BatchNorm1d(2).eval()))
    shared.eval()
    before = [module.training for module in model.modules()]
    with evaluating([model, trained]):
        assert trained.merged
    assert [module.training for module in model.modules()] == before
    assert not trained.merged
    assert frozen.merged
