"""What an autoscaler is asked for, by what waits and the machines that there are."""

from __future__ import annotations

import pytest

from det_native.master.launch.ray.bridge.asking import Demand, demands_of
from det_native.master.launch.ray.bridge.nodes import Machine, Machines, SlotRule
from det_native.schema.cluster import SlotsWanted


def _machines(setting: str | None, *resources: dict[str, float]) -> tuple[list[Machine], SlotRule]:
    rule = SlotRule.parse(setting)
    nodes = [
        {"NodeID": str(number), "Alive": True, "Resources": each, "NodeManagerHostname": "m", "NodeManagerAddress": ""}
        for number, each in enumerate(resources)
    ]
    return list(Machines(rule, {}).read(nodes, {}, {}, {}).values()), rule


HEAD = {"CPU": 2.0, "node:__internal_head__": 1.0}
H100 = {"CPU": 16.0, "GPU": 8.0, "accelerator_type:H100": 1.0}


@pytest.mark.parametrize(
    ("setting", "resources", "resource", "amount"),
    [
        (None, [{"CPU": 16.0}], "CPU", 1.0),
        ("cpu:2", [{"CPU": 16.0}], "CPU", 8.0),
        ("2", [HEAD, {"CPU": 16.0}], "CPU", 8.0),
        ("cpu:2", [HEAD], "CPU", 1.0),
        ("cpu:2", [], "CPU", 1.0),
        ("cpu:2", [{"CPU": 4.0}, {"CPU": 16.0}], "CPU", 8.0),
        ("cpu:3", [{"CPU": 10.0}], "CPU", 3.3333),
        (None, [HEAD, H100], "GPU", 1.0),
        ("cuda:4", [H100], "GPU", 2.0),
        ("cpu:2", [H100], "CPU", 8.0),
        ("cuda:2", [], "GPU", 1.0),
    ],
)
def test_a_slot_is_as_large_as_those_that_there_are(
    setting: str | None, resources: list[dict[str, float]], resource: str, amount: float
) -> None:
    asked = demands_of([SlotsWanted(slots=2)], *_machines(setting, *resources))
    assert asked == [Demand({resource: amount})] * 2


def test_what_must_be_on_one_machine_is_asked_for_as_a_whole() -> None:
    wanted = [SlotsWanted(slots=2, single_node=True), SlotsWanted(slots=1)]
    assert demands_of(wanted, *_machines("cpu:2", {"CPU": 16.0})) == [Demand({"CPU": 16.0}), Demand({"CPU": 8.0})]
    thirds = demands_of([SlotsWanted(slots=3, single_node=True)], *_machines("cpu:3", {"CPU": 10.0}))
    assert thirds == [Demand({"CPU": 9.9999})]  # no more than the machine has


@pytest.mark.parametrize(("accelerator", "told"), [("h100", "H100"), ("b200", "B200"), ("Own-1", "Own-1")])
def test_a_type_of_gpus_is_spelled_as_ray_does(accelerator: str, told: str) -> None:
    wanted = SlotsWanted(slots=8, accelerator=accelerator, single_node=True)
    expected = Demand({"GPU": 8.0, f"accelerator_type:{told}": 0.001})
    assert demands_of([wanted], *_machines(None, HEAD, H100)) == [expected]


def test_processors_are_asked_for_where_they_are_wanted_beside_gpus() -> None:
    assert demands_of([SlotsWanted(slots=1, accelerator="cpu")], *_machines(None, HEAD, H100)) == [Demand({"CPU": 1.0})]


def test_labels_are_passed_on() -> None:
    wanted = SlotsWanted(slots=1, node="zone=b")
    assert demands_of([wanted], *_machines(None, {"CPU": 2.0})) == [Demand({"CPU": 1.0}, {"zone": "b"})]
