"""Which kills for want of memory count: those of the process's own control group."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from det_native.master.launch.process import MemoryKills
from det_native.schema import memory_kills


def _system(folder: Path, group: str, files: dict[str, int], monkeypatch: pytest.MonkeyPatch) -> None:
    """Lay out a system's control groups; `group` is what ``/proc/PID/cgroup`` says of the process."""
    (folder / "proc").mkdir(exist_ok=True)
    (folder / "proc/cgroup").write_text(group)
    for name, count in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(f"low 0\noom_kill {count}\n")

    def path(text: str) -> Path:
        return folder / "proc/cgroup" if text.endswith("/cgroup") else folder / text.lstrip("/")

    monkeypatch.setattr(memory_kills, "Path", path)
    monkeypatch.setattr(memory_kills, "_GROUPS", folder / "groups")


@pytest.mark.parametrize(
    ("group", "own", "other"),
    [
        pytest.param("0::/job/7\n", "groups/job/7/memory.events.local", "proc/vmstat", id="version 2"),
        pytest.param("0::/job/7\n", "groups/job/7/memory.events", "proc/vmstat", id="version 2, an older kernel"),
        pytest.param("0::/job/7\n", "groups/memory.events", "groups/job/8/memory.events", id="in a container"),
        pytest.param(
            "4:cpu,memory:/job/7\n0::/\n", "groups/memory/job/7/memory.oom_control", "proc/vmstat", id="version 1"
        ),
        pytest.param("0::/job/7\n", "proc/vmstat", "groups/job/8/memory.events", id="no count for the group"),
    ],
)
def test_only_a_kill_in_its_own_group_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, group: str, own: str, other: str
) -> None:
    _system(tmp_path, group, {own: 3, other: 5}, monkeypatch)
    kills = MemoryKills(os.getpid())
    (tmp_path / other).write_text("oom_kill 6\n")
    assert not kills.any()
    (tmp_path / own).write_text("oom_kill 4\n")
    assert kills.any()


def test_a_system_that_counts_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _system(tmp_path, "", {}, monkeypatch)
    assert not MemoryKills(os.getpid()).any()
