"""What a home keeps of its Ray cluster."""

from __future__ import annotations

from pathlib import Path

from det_native.master.launch.ray.identity import identify
from det_native.schema.home import Home


def test_names_and_addresses_are_kept(tmp_path: Path) -> None:
    home = Home(tmp_path)
    identify(home).remember(home, {"a": "gpu-1"}, "head:1")
    identify(home).remember(home, {"b": "gpu-2"}, "auto")
    kept = identify(home)
    assert (kept.names, kept.addresses) == ({"a": "gpu-1", "b": "gpu-2"}, ["head:1", "auto"])
    assert kept.id == identify(home).id


def test_the_same_once_more_writes_nothing(tmp_path: Path) -> None:
    home = Home(tmp_path)
    identity = identify(home)
    identity.remember(home, {"a": "gpu-1"}, "head:1")
    home.ray.unlink()
    identity.remember(home, {"a": "gpu-1"}, "head:1")
    assert not home.ray.exists()
