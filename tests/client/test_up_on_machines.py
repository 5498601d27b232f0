"""What ``det up`` says of the machines that a master has begun with."""

from __future__ import annotations

from typing import Any

import pytest
from click.testing import CliRunner

from det_native.client.command import cli
from det_native.client.up_command import say_cluster
from det_native.schema.cluster import NodeInfo
from det_native.schema.rest import MasterInfo, SlotInfo


def _info(*nodes: NodeInfo, **fields: Any) -> MasterInfo:
    slots = [SlotInfo(id=f"{node.name}/{number}", device="cpu") for node in nodes for number in range(node.slots)]
    master = {"version": "1", "protocol": 1, "pid": 1, "python": "3.11", "started": "now", "home": "/home"}
    return MasterInfo(**master, **{"launcher": "ray", **fields}, slots=slots, nodes=list(nodes))


A = NodeInfo(id="1", name="a", slots=2)
B = NodeInfo(id="2", name="b", slots=4)
BROKEN = NodeInfo(id="3", name="c", trouble="It has no det_native.")


@pytest.mark.parametrize(
    ("info", "told", "warned"),
    [
        (_info(A, B), "Its cluster has 2 machines with 6 slots: `det nodes` shows them.\n", ""),
        (_info(BROKEN, A), "Its cluster has 2 machines with 2 slots; 1 of them cannot be used: see `det nodes`.\n", ""),
        (_info(A, outage="Nobody answers."), "", "Warning: Nobody answers.\n"),
        (_info(launcher="local"), "", ""),
    ],
)
def test_it_says_what_can_be_used(info: MasterInfo, told: str, warned: str, capsys: pytest.CaptureFixture[str]) -> None:
    say_cluster(info)
    assert tuple(capsys.readouterr()) == (told, warned)


@pytest.mark.parametrize("options", [["--ray-address", "head:6379"], ["--ray-trusted"]])
def test_an_option_of_ray_alone_starts_nothing(options: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DET_LAUNCHER", raising=False)
    result = CliRunner().invoke(cli, ["up", *options])
    assert result.exit_code == 2
    assert f"{options[0]} would have no effect" in result.output
    assert "add --launcher ray, or leave it out." in result.output
