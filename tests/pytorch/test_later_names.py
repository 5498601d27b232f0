"""Names of Determined 0.15 and later in a PyTorchTrial: reducers, numbers of batches, exchange between slots."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from det_harness.frameworks.torch.checks import check_trial_class
from digits_trials import Full, LocalRun
from torch import nn

from det_native.errors import TrialDefinitionError, UnsupportedFeatureError
from det_native.pytorch import PyTorchTrial, PyTorchTrialContext
from det_native.schema.environment import Ranks, TrialEnvironment
from det_native.trial import DistributedContext

pytestmark = pytest.mark.slow


class Later(Full):
    evaluate_full_dataset = PyTorchTrial.evaluate_full_dataset
    seen: list[Any]

    def __init__(self, context: PyTorchTrialContext) -> None:
        super().__init__(context)
        Later.seen = []
        self.numbers = context.wrap_reducer(lambda values: values, name="numbers", for_training=False)
        self.count = context.wrap_reducer(lambda values: {"count": len(values)}, for_validation=False)
        Later.seen.append((context.distributed.rank, context.distributed.size, context.distributed.allgather("x")))

    def train_batch(self, batch: Any, epoch_idx: int, batch_idx: int) -> Any:
        assert self.context.current_train_batch() == batch_idx
        assert self.context.current_train_epoch() == epoch_idx
        self.count.update(batch_idx)
        return super().train_batch(batch, epoch_idx, batch_idx)

    def evaluate_batch(self, batch: Any, batch_idx: int) -> dict[str, Any]:  # type: ignore[override]
        self.numbers.update(batch_idx)
        images, labels = batch
        return {
            "loss": nn.functional.cross_entropy(self.model(images), labels),
            "after": self.context.current_train_batch(),
        }


def test_names_of_later_versions_work_as_they_did(tmp_path: Path) -> None:
    run = LocalRun(tmp_path, batches=26, min_validation_period={"batches": 13})
    run.run(Later)
    assert Later.seen == [(0, 1, ["x"])]
    rows = run.reporter.validation_rows
    assert [row.metrics["numbers"] for row in rows] == [[0, 1, 2, 3, 4]] * 2, "297 records, 64 in a batch"
    assert [row.metrics["after"] for row in rows] == [12, 25]
    assert sum(row.metrics.get("count", 0) for row in run.reporter.training_rows) == 26


def test_before_training_there_is_no_batch() -> None:
    context = PyTorchTrialContext(TrialEnvironment(config={}, hparams={}))
    for name in ("current_train_batch", "current_train_epoch"):
        with pytest.raises(TrialDefinitionError, match=rf"context\.{name}\(\)"):
            getattr(context, name)()


def test_other_parameters_of_an_evaluation_are_the_users_own() -> None:
    def evaluate(self: Any, batch: Any, most: int = 5) -> dict[str, Any]:
        return {"loss": float(most)}

    def both(self: Any, batch: Any, batch_idx: int, other: int) -> dict[str, Any]:
        return {}

    check_trial_class(type("Own", (Later,), {"evaluate_batch": evaluate}))
    with pytest.raises(TrialDefinitionError, match=r"must take \(self, batch\): missing a required argument: 'other'"):
        check_trial_class(type("Both", (Later,), {"evaluate_batch": both}))


class Rows:
    """Stands for processes that have all given what this one has, each with its rank."""

    def __init__(self, size: int) -> None:
        self.size = size

    def all_gather_object(self, value: Any) -> list[Any]:
        return [(rank, value) for rank in range(self.size)]


def test_what_processes_exchange_is_told_by_rank_and_by_machine() -> None:
    ranks = Ranks(rank=3, size=4, local_rank=1, local_size=2, agents=2)
    distributed = DistributedContext(ranks)
    with pytest.raises(UnsupportedFeatureError, match="exchanges values between slots in a PyTorchTrial"):
        distributed.allgather(1)
    distributed.connect(Rows(4))
    assert (distributed.rank, distributed.size, distributed.local_rank, distributed.local_size) == (3, 4, 1, 2)
    assert distributed.cross_size == distributed.get_num_agents() == 2
    assert distributed.allgather("x") == [(0, "x"), (1, "x"), (2, "x"), (3, "x")]
    assert distributed.allgather_local("x") == [(2, "x"), (3, "x")]
    assert distributed.gather("x") is distributed.gather_local("x") is None
    assert distributed.broadcast("x") == (0, None)
    assert distributed.broadcast_local("x") == (2, None)
    alone = DistributedContext(Ranks())
    assert alone.gather("x") == alone.allgather_local("x") == ["x"]
    assert alone.broadcast(torch.ones(1)).item() == 1.0
