"""What machines of a cluster are called, by their ids and host names."""

from __future__ import annotations

from typing import Any

from det_native.master.launch.ray.bridge.nodes import Machines, SlotRule


def _node(node_id: str, host: str, *, alive: bool = True) -> dict[str, Any]:
    return {
        "NodeID": node_id,
        "Alive": alive,
        "NodeManagerHostname": host,
        "NodeManagerAddress": "10.0.0.1",
        "Resources": {"CPU": 2.0},
    }


def _names(machines: Machines, *nodes: dict[str, Any]) -> dict[str, str]:
    return {node_id: machine.info.name for node_id, machine in machines.read(nodes, {}, {}, {}).items()}


def test_machines_with_the_same_host_name_are_numbered_and_keep_their_names() -> None:
    machines = Machines(SlotRule(), {})
    assert _names(machines, _node("b", "vm.lan"), _node("c", "vm.lan")) == {"b": "vm", "c": "vm-2"}
    assert _names(machines, _node("a", "vm.lan"), _node("c", "vm.lan"), _node("b", "vm.lan")) == {
        "a": "vm-3",
        "b": "vm",
        "c": "vm-2",
    }


def test_a_machine_that_was_started_again_is_called_as_before() -> None:
    machines = Machines(SlotRule(), {"a": "gpu-6", "b": "gpu-7"})
    found = _names(machines, _node("a", "gpu-6"), _node("b", "gpu-7", alive=False), _node("c", "gpu-7"))
    assert found == {"a": "gpu-6", "c": "gpu-7"}
    assert machines.name("b") == "gpu-7"


def test_a_name_of_before_that_two_machines_have_stays_with_one_of_them() -> None:
    machines = Machines(SlotRule(), {"a": "gpu-7", "c": "gpu-7"})
    assert _names(machines, _node("a", "gpu-7"), _node("c", "gpu-7")) == {"a": "gpu-7", "c": "gpu-7-2"}
