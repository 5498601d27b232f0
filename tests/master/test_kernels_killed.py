"""A kernel that is killed at a drawn moment, beside masters that come and go: no row is lost, none is there twice."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from master_parts import Master, running_master
from tries import draw

PROGRAM = Path(__file__).with_name("training_kernel.py")
#: Batches to train, a master that comes and the master that goes; at the end of it the kernel is killed.
MOMENTS = st.lists(st.integers(1, 30) | st.sampled_from(["up", "down"]), min_size=1, max_size=8)


class Masters:
    """A master of a home, which comes and goes."""

    def __init__(self, home: Path, address: Path) -> None:
        self.home = home
        self.address = address
        self.here = ExitStack()
        self.down()

    def up(self) -> Master:
        """Start the next master, in the place of the one before."""
        self.down()
        master = self.here.enter_context(running_master(self.home))
        temporary = self.address.with_suffix(".new")
        temporary.write_text(f"{master.client.base_url} {master.token}")
        temporary.replace(self.address)
        return master

    def down(self) -> None:
        """End it."""
        self.address.unlink(missing_ok=True)
        self.here.close()


def keeps_all_rows(moments: list[int | str]) -> None:
    """Train and kill; see that the last master has all that the kernel had in its spool, once."""
    with tempfile.TemporaryDirectory() as folder:
        masters = Masters(Path(folder) / "home", Path(folder) / "address")
        command = [sys.executable, str(PROGRAM), str(masters.home), str(masters.address)]
        trained = 0
        with (
            masters.here,
            subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as kernel,
        ):
            assert kernel.stdin is not None
            assert kernel.stdout is not None
            for moment in [*moments, 1]:
                if isinstance(moment, str):
                    getattr(masters, moment)()
                    continue
                kernel.stdin.write("go on\n" * moment)
                kernel.stdin.flush()
                for _ in range(moment):
                    trained = int(kernel.stdout.readline())
            kernel.kill()
            kernel.wait()
            master = masters.up()
            (found,) = master.until("/experiments", lambda found: len(found) == 1 and found[0]["ended"] is not None)
            assert found["state"] == "CANCELED"
            assert found["error"]["message"].endswith(f"after batch {trained} of 100000.")
            (trial,) = master.get(f"/experiments/{found['id']}/trials")
            for kind in ("training", "validation"):
                rows = master.get(f"/trials/{trial['id']}/metrics", kind=kind, limit=1000)
                assert [row["batch"] for row in rows] == [*range(1, trained + 1)]
            lines = master.get(f"/trials/{trial['id']}/logs", limit=1000)
            assert [line["text"] for line in lines] == [f"batch {batch}" for batch in range(1, trained + 1)]


@pytest.mark.slow
@settings(max_examples=5, deadline=None)
@given(moments=MOMENTS)
def test_a_killed_kernel_loses_no_row(moments: list[int | str]) -> None:
    keeps_all_rows(moments)


@pytest.mark.soak
def test_many_killed_kernels_lose_no_row() -> None:
    draw("kernels killed", 200, keeps_all_rows, moments=MOMENTS)
