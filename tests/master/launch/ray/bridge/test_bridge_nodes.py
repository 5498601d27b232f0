"""Machines, by what Ray tells of them."""

from __future__ import annotations

from typing import Any

from det_native.master.launch.ray.bridge.nodes import Machines, SlotRule, head_of, steadied


def node(name: str, cpus: float = 2.0, **resources: float) -> dict[str, Any]:
    """Return a machine as Ray tells of it."""
    total = {"CPU": cpus, **resources}
    return {"NodeID": name, "Alive": True, "Resources": total, "NodeManagerHostname": "vm", "NodeManagerAddress": "::1"}


def test_what_is_left_to_a_machine_that_is_drained_is_known_and_the_head_is_found() -> None:
    machines = Machines(SlotRule(), {"old": "vm"})
    nodes = [node("a", **{"node:__internal_head__": 1.0}), node("b")]
    first = machines.read(nodes, {}, {}, {})
    assert [machine.seconds for machine in first.values()] == [None, None]
    second = steadied(first, machines.read(nodes, {}, {}, {"b": 12.5}))
    assert [machine.seconds for machine in second.values()] == [None, 12.5]
    assert head_of(second) == "a"
    assert head_of({"b": second["b"]}) == ""
    assert machines.of_before == {"old"}


def test_a_slot_computes_with_its_part_of_the_cpus_that_ray_has_there() -> None:
    nodes = [node("a", 16.0), node("b", 3.0), node("c", 8.0, GPU=2.0), node("d", 0.0, GPU=1.0)]
    by_default, halved = Machines(SlotRule(), {}), Machines(SlotRule(count=2), {})
    assert [machine.threads for machine in by_default.read(nodes, {}, {}, {}).values()] == [1, 1, 4, 0]
    assert [machine.threads for machine in halved.read(nodes, {}, {}, {}).values()] == [8, 1, 4, 0]
