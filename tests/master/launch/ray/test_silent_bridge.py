"""A bridge that hangs is ended, and another one started."""

from __future__ import annotations

from pathlib import Path

import pytest

from det_native.master.launch.ray import bridge_process, connection
from det_native.master.launch.ray.launcher import RayLauncher
from det_native.schema.home import Home


@pytest.mark.slow
def test_a_bridge_that_says_nothing_any_more_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bridge_process, "_MODULE", "silent_bridge")
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent))
    monkeypatch.setattr(connection, "_SILENT_SECONDS", 0.2)
    monkeypatch.setattr(connection, "_CLOSE_SECONDS", 0.0)
    launcher = RayLauncher(Home(tmp_path), "unix:/nowhere", "nowhere:1")
    try:
        seen: list[str] = []
        while not any("was lost" in sentence for sentence in seen):
            launcher.wait(0.3)
            seen.append(launcher.trouble())
        assert any("are being prepared" in sentence for sentence in seen)
    finally:
        launcher.close(kill_workers=False)
