"""The launcher's parts that need no process: numbers of standbys, slots, output, memory."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from det_native.errors import ArgumentError
from det_native.master.launch.imports import well_known_imports
from det_native.master.launch.output import read_output, tail
from det_native.master.launch.policy import Bounds, Policy, Use, bounds
from det_native.master.launch.pool import available_share
from det_native.master.launch.slots import device_of, discover_slots, parse_gpus, visible_gpus
from det_native.schema.manifests import BundleManifest, Cell, Interpreter, Program

POLICY = Policy(idle=100.0)
LISTING = """GPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-aaaa)
GPU 1: NVIDIA A100-SXM4-40GB (UUID: GPU-bbbb)
  MIG 3g.20gb     Device  0: (UUID: MIG-1111)
  MIG 3g.20gb     Device  1: (UUID: MIG-2222)
GPU 2: NVIDIA A100-SXM4-40GB (UUID: GPU-cccc)
"""


@pytest.fixture
def gpus(tmp_path: Path) -> dict[str, str]:
    """An environment in which ``nvidia-smi`` lists GPUs."""
    program = tmp_path / "nvidia-smi"
    program.write_text(f"#!/bin/sh\ncat <<'END'\n{LISTING}END\n")
    program.chmod(0o755)
    return {"PATH": f"{tmp_path}:/usr/bin:/bin"}


class TestPolicy:
    def test_the_kind_used_last_gets_one_for_each_worker_at_once_and_one_for_checks(self) -> None:
        uses = {"torch": Use(10.0, peak=3), "keras": Use(5.0, peak=4)}
        assert bounds(uses, 11.0, 8, 0.9, POLICY) == {"torch": Bounds(4, 4), "keras": Bounds(2, 2)}
        assert bounds(uses, 11.0, 2, 0.9, POLICY)["torch"] == Bounds(3, 3)

    def test_kinds_without_use_go_and_the_last_one_stays_longer(self) -> None:
        uses = {"torch": Use(10.0), "keras": Use(5.0)}
        assert set(bounds(uses, 106.0, 1, 0.9, POLICY)) == {"torch"}
        assert set(bounds(uses, 300.0, 1, 0.9, POLICY)) == {"torch"}
        assert bounds(uses, 411.0, 1, 0.9, POLICY) == {}

    def test_little_memory_adds_none_and_very_little_ends_some(self) -> None:
        uses = {"torch": Use(10.0, peak=2), "keras": Use(5.0)}
        assert bounds(uses, 11.0, 2, 0.2, POLICY) == {"torch": Bounds(1, 3), "keras": Bounds(0, 2)}
        assert bounds(uses, 11.0, 2, 0.05, POLICY) == {"torch": Bounds(1, 1)}

    @given(
        st.dictionaries(st.integers(0, 5), st.builds(Use, st.floats(0, 1000), st.integers(0, 20))),
        st.floats(0, 3000),
        st.integers(1, 8),
        st.floats(0, 1),
    )
    def test_numbers_stay_within_the_slots(self, uses: dict[int, Use], now: float, slots: int, memory: float) -> None:
        found = bounds(uses, now, slots, memory, POLICY)
        assert all(0 <= item.least <= item.most <= slots + 1 for item in found.values())
        assert sum(item.most > 2 for item in found.values()) <= 1


class TestSlots:
    def test_gpus_come_first_and_parts_of_a_gpu_count_each(self, gpus: dict[str, str]) -> None:
        slots = discover_slots(None, gpus)
        assert [slot.id for slot in slots] == ["cuda:0", "cuda:MIG-1111", "cuda:MIG-2222", "cuda:2"]
        assert {slot.device for slot in slots} == {"cuda"}
        assert [device_of(slot.id) for slot in slots] == ["0", "MIG-1111", "MIG-2222", "2"]
        assert parse_gpus("") == []

    def test_only_visible_gpus_count(self, gpus: dict[str, str]) -> None:
        assert visible_gpus({**gpus, "CUDA_VISIBLE_DEVICES": "2, GPU-aaaa,-1,0"}) == ["2", "GPU-aaaa"]
        assert visible_gpus({**gpus, "CUDA_VISIBLE_DEVICES": ""}) == []

    def test_a_number_takes_so_many_gpus_or_cpu_slots(self, gpus: dict[str, str]) -> None:
        assert [slot.id for slot in discover_slots("1", gpus)] == ["cuda:0"]
        assert [slot.id for slot in discover_slots("cpu:2", gpus)] == ["cpu:0", "cpu:1"]
        assert [slot.id for slot in discover_slots("3", {"PATH": ""})] == ["cpu:0", "cpu:1", "cpu:2"]
        assert device_of("cpu:1") is None

    def test_without_gpus_there_is_a_slot_for_each_core(self) -> None:
        slots = discover_slots(None, {"PATH": ""})
        assert slots
        assert {slot.device for slot in slots} == {"cpu"}

    @pytest.mark.parametrize("setting", ["0", "many", "cuda:9", "cpu:", "-1", "tpu:1"])
    def test_what_cannot_be_is_refused_with_what_can(self, setting: str, gpus: dict[str, str]) -> None:
        with pytest.raises(ArgumentError, match="slots"):
            discover_slots(setting, gpus)


class TestImports:
    def _found(self, *sources: str) -> tuple[str, ...]:
        cells = tuple(Cell(number=index, cell_id=None, source=source) for index, source in enumerate(sources))
        return well_known_imports(
            BundleManifest(
                protocol=1,
                interpreter=Interpreter(python="3.11.0", executable=""),
                program=Program(kind="cells", framework="torch", cells=cells),
            )
        )

    def test_well_known_libraries_outside_functions_are_found(self) -> None:
        found = self._found(
            "import numpy as np, os\nfrom sklearn.datasets import load_digits\nimport my_helpers, wandb",
            "def f():\n    import pandas\nif True:\n    import matplotlib.pyplot as plt",
        )
        assert found == ("matplotlib.pyplot", "numpy", "sklearn.datasets")

    def test_what_does_not_parse_is_passed_over(self) -> None:
        assert self._found("import (", "from . import numpy", "import scipy", "(" * 5000) == ("scipy",)


class TestOutput:
    @given(st.text(max_size=60), st.integers(1, 20))
    def test_reading_in_parts_gives_what_was_written(
        self, tmp_path_factory: pytest.TempPathFactory, text: str, maximum: int
    ) -> None:
        path = tmp_path_factory.mktemp("output") / "output.log"
        path.write_bytes(text.encode())
        found, offset = "", 0
        while (part := read_output(path, offset, ended=True, maximum=max(4, maximum))).text:
            found, offset = found + part.text, part.offset
        assert found == text
        assert offset == len(text.encode())

    def test_an_unfinished_line_waits_until_the_worker_has_ended(self, tmp_path: Path) -> None:
        path = tmp_path / "output.log"
        path.write_bytes(b"one\ntw")
        assert read_output(path, 0, ended=False).text == "one\n"
        assert read_output(path, 4, ended=False).text == ""
        assert read_output(path, 4, ended=True).text == "tw"

    def test_a_line_longer_than_one_read_does_not_stop_the_rest(self, tmp_path: Path) -> None:
        path = tmp_path / "output.log"
        path.write_text("ääääää")
        part = read_output(path, 0, ended=False, maximum=5)
        assert (part.text, part.offset) == ("ää", 4)

    def test_tail_gives_the_last_lines_since_a_place(self, tmp_path: Path) -> None:
        path = tmp_path / "log"
        path.write_text("old\nnew 1\nnew 2\n")
        assert tail(path, 5, since=4) == "new 1\nnew 2"
        assert tail(path, 1) == "new 2"
        assert tail(tmp_path / "none", 3) == ""


class TestMemory:
    @pytest.mark.parametrize(
        ("limit", "usage", "statistics", "cached"),
        [
            ("memory.max", "memory.current", "memory.stat", "inactive_file"),
            (
                "memory/memory.limit_in_bytes",
                "memory/memory.usage_in_bytes",
                "memory/memory.stat",
                "total_inactive_file",
            ),
        ],
    )
    def test_the_limit_of_the_control_group_counts(
        self, tmp_path: Path, limit: str, usage: str, statistics: str, cached: str
    ) -> None:
        (tmp_path / "memory").mkdir()
        (tmp_path / limit).write_text("1000\n")
        (tmp_path / usage).write_text("950\n")
        (tmp_path / statistics).write_text(f"anon 1\n{cached} 50\n")
        assert available_share(tmp_path) == pytest.approx(0.1)

    def test_without_a_limit_it_is_the_machines(self, tmp_path: Path) -> None:
        (tmp_path / "memory.max").write_text("max\n")
        assert 0 < available_share(tmp_path) <= 1
