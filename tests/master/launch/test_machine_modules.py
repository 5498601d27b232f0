"""What the machines of a cluster have, as if they were together."""

from __future__ import annotations

from det_native.master.launch.machine_modules import disagreements, of_any
from det_native.schema.cluster import MachineModules


def _machine(name: str, **versions: str) -> MachineModules:
    modules = {module: {module: version} for module, version in versions.items()}
    return MachineModules(name=name, python="3.11.7", executable="/usr/bin/python", modules=modules)


def test_machines_that_agree_are_as_one() -> None:
    machines = [_machine("a", torch="2.1"), _machine("b", torch="2.1")]
    assert of_any(machines, ["torch", "other"]) == {"torch": {"torch": "2.1"}}
    assert disagreements(machines, ["torch", "other"]) == []


def test_what_only_some_have_is_told_with_their_names() -> None:
    machines = [_machine(name, **({"torch": "2.1"} if name == "a" else {})) for name in "abcdef"]
    assert of_any(machines, ["torch"]) == {"torch": {"torch": "2.1"}}
    assert disagreements(machines, ["torch"]) == [
        "torch is not installed on b, c, d and 2 more, but on other machines of the cluster."
    ]


def test_several_versions_are_told_and_the_most_common_is_compared() -> None:
    machines = [_machine("a", torch="2.0"), _machine("b", torch="2.1"), _machine("c", torch="2.1")]
    assert of_any(machines, ["torch"]) == {"torch": {"torch": "2.1"}}
    assert disagreements(machines, ["torch"]) == [
        "The machines of the cluster have several versions of torch: 2.0 on a; 2.1 on b, c."
    ]
