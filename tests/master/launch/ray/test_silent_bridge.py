"""A bridge that hangs is ended, and another one started; that Ray has ended one is told."""

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


@pytest.mark.slow
def test_that_ray_ends_the_process_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bridge_process, "_MODULE", "aborting_bridge")
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent))
    launcher = RayLauncher(Home(tmp_path), "unix:/nowhere", "nowhere:1")
    try:
        while "cannot be made" not in launcher.trouble():
            launcher.wait(0.3)
        assert "(code -6)" in launcher.trouble()
        assert launcher.is_away
    finally:
        launcher.close(kill_workers=False)
