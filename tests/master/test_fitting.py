"""What could never run on this machine is refused; what may, is not."""

from __future__ import annotations

import platform
from typing import Any

import pytest
from master_parts import ClusterLauncher, MemoryLauncher

from det_native.errors import ArgumentError
from det_native.master.flow.fitting import check_fits
from det_native.master.flow.slots import Slots
from det_native.schema.resources import Resources
from det_native.schema.rest import SlotInfo

H100 = [SlotInfo(id=f"cuda:{index}", device="cuda", name="NVIDIA H100 80GB HBM3") for index in range(2)]
UNKNOWN = [SlotInfo(id="cuda:0", device="cuda")]
CPU = [SlotInfo(id="cpu:0", device="cpu")]


def _check(slots: list[SlotInfo], **resources: Any) -> None:
    check_fits(Resources(**resources), Slots(MemoryLauncher(), slots))


@pytest.mark.parametrize(
    ("slots", "resources"),
    [
        (H100, {"accelerator": "h100", "slots_per_trial": 2}),
        (UNKNOWN, {"accelerator": "H100"}),
        (CPU, {"accelerator": "cpu"}),
        (CPU, {"node": platform.node()}),
        (CPU, {"node": "localhost", "is_single_node": True}),
        (CPU, {"accelerator": "H100", "node": "far", "slots_per_trial": 0}),
    ],
)
def test_what_may_run_is_not_refused(slots: list[SlotInfo], resources: dict[str, Any]) -> None:
    _check(slots, **resources)


@pytest.mark.parametrize(
    ("slots", "resources", "words"),
    [
        (H100, {"slots_per_trial": 3}, "3 slots for each trial, but the cluster has 2 slots"),
        (H100, {"accelerator": "A100"}, "has none of them among its slots .NVIDIA H100 80GB HBM3."),
        (CPU, {"accelerator": "H100"}, "has none of them among its slots .cpu."),
        (H100, {"accelerator": "cpu"}, "1 of cpu for each trial"),
        (CPU, {"node": "no-such-machine"}, "'no-such-machine' is not this machine"),
        (CPU, {"node": "zone=north"}, "'zone=north' is not this machine"),
    ],
)
def test_what_can_never_run_is_refused_in_a_sentence(
    slots: list[SlotInfo], resources: dict[str, Any], words: str
) -> None:
    with pytest.raises(ArgumentError, match=words):
        _check(slots, **resources)


def test_a_cluster_refuses_nothing_that_machines_to_come_may_have() -> None:
    slots = Slots(ClusterLauncher({"a": 1}), [])
    check_fits(Resources(slots_per_trial=64, accelerator="B200", node="z"), slots)


def test_several_machines_and_one_contradict_each_other() -> None:
    for name in ("is_single_node", "native_parallel"):
        with pytest.raises(ValueError, match=f"{name}: true for one"):
            Resources(slots_per_trial=2, placement="spread", **{name: True})
