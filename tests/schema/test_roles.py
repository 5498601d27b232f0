"""Roles of a trial's processes: who is who, and what is refused."""

from __future__ import annotations

import re
from typing import Any

import pytest

from det_native.errors import ConfigurationError
from det_native.schema.loading import load_config
from det_native.schema.roles import processes_of, role_title, roles_of

FOUR = {"chief": 1, "worker": 2, "ps": 1, "evaluator": 1}


def written(roles: Any, **others: Any) -> dict[str, Any]:
    distributed = {"strategy": "tf_config", "roles": roles, **others.pop("distributed", {})}
    return {
        "searcher": {"name": "single", "metric": "loss", "max_length": {"batches": 10}},
        "hyperparameters": {"global_batch_size": 8},
        "distributed": distributed,
        **others,
    }


def test_ranks_are_numbered_with_those_that_have_slots_first() -> None:
    config = load_config(written(FOUR)).model_dump(mode="json")
    assert [role.title for role in roles_of(config)] == ["chief", "worker 0", "worker 1", "ps 0", "evaluator"]
    assert [role.has_slot for role in roles_of(config)] == [True, True, True, False, False]
    assert config["resources"]["slots_per_trial"] == 3
    assert processes_of(config, 3) == 5
    assert (role_title(config, 1), role_title(config, None), role_title(config, 5)) == ("worker 0", None, None)


def test_without_the_strategy_processes_have_no_roles() -> None:
    raw = written(None)
    del raw["distributed"]
    config = load_config(raw).model_dump(mode="json")
    assert roles_of(config) == ()
    assert processes_of(config, 1) == 1


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (written(None), "distributed.roles: is missing"),
        (written({"worker": 1, "ps": 1}), "without a chief nobody writes checkpoints"),
        (written({"chief": 2}), "has one process that leads it"),
        (written({"chief": 1, "master": 1}), "are both given"),
        (written({"chief": 1, "evaluator": 2}), "TensorFlow takes one only"),
        (written({"chief": 1, "worker": 1}), "lie with a ps"),
        (written({"chief": 1, "wroker": 1}), "Did you mean worker?"),
        (written({"chief": -1}), "must be the number of such processes"),
        (written(FOUR, resources={"slots_per_trial": 2}), "take a slot each: 3"),
        (written(FOUR, distributed={"backend": "horovod"}), "the processes share their variables"),
        (written(FOUR, distributed={"strategy": "ddp"}), "distributed.strategy is not tf_config"),
        (written({}, distributed={"strategy": "ddp", "trusted_network": True}), "nothing else listens"),
    ],
)
def test_what_contradicts_itself_is_refused(raw: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigurationError, match=re.escape(words)):
        load_config(raw)
