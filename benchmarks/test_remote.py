"""A master behind SSH on loopback: what the line adds to a submit, what is sent twice, how fast a checkpoint comes."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from notebook_kernel import Kernel, running_kernel

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests"))
from ssh_machine import SshMachine, running_machine
from test_submit import _DEFINITION

_SUBMIT = """
begin = time.perf_counter()
experiment = det.experimental.create(Tiny, config, master_url={url!r}, show="none", **more)
while not (experiment.trials and experiment.trials[0].metrics("training")):
    if time.perf_counter() - begin > 5:
        assert experiment.state not in ("Failed", "Stopped"), experiment.state
seconds = time.perf_counter() - begin
"""
_REST = """
experiment.wait(show="none")
from det_native.client.connect import connect
from det_native.schema import routes
begin = time.perf_counter()
while connect({url!r}).call(routes.GET_MASTER).standbys.get('torch', 0) < 2:
    assert time.perf_counter() - begin < 100, 'no worker is kept ready'
    time.sleep(0.05)
"""
_LARGE = """
class Large(Tiny):
    def __init__(self, context):
        self.context = context
        model = nn.Linear(64, 10)
        model.register_buffer("ballast", torch.rand(250_000_000))
        self.model = context.wrap_model(model)
        self.optimizer = context.wrap_optimizer(torch.optim.SGD(self.model.parameters(), lr=0.01))

experiment = det.experimental.create(Large, config, master_url={url!r}, show="none")
experiment.wait(show="none")
checkpoint = experiment.trials[0].checkpoints[-1]
"""


@pytest.fixture(scope="module")
def machine() -> Iterator[SshMachine]:
    """The machine, as this process and what it starts reach it."""
    with running_machine() as found, pytest.MonkeyPatch.context() as patch, found.as_seen_here(patch):
        yield found


@pytest.fixture(scope="module")
def kernel(machine: SshMachine, master_home: Path) -> Iterator[Kernel]:
    """A kernel with a master of its own on this machine, too."""
    with running_kernel(master_home) as running:
        running.run(_DEFINITION)
        running.run("more = {}")
        for url in (None, machine.address):
            running.run(_SUBMIT.format(url=url))
            running.run(_REST.format(url=url))
        yield running


def test_submit_over_ssh(machine: SshMachine, kernel: Kernel, figure: Callable[[str, str, str, bool], None]) -> None:
    added: list[float] = []
    for _ in range(7):
        seconds = []
        for url in (None, machine.address):
            kernel.run(_REST.format(url=url))
            seconds.append(float(kernel.run(_SUBMIT.format(url=url), "seconds")))
            kernel.run("experiment.wait(show='none')")
        added.append(seconds[1] - seconds[0])
    median = statistics.median(added)
    what = "submit to first metric over SSH, beyond the same on loopback, connection warm"
    figure(f"{what} [{min(added):.2f}..{max(added):.2f} s]", f"{median:.2f} s", "≤ 0.3 s", median <= 0.3)


def test_an_unchanged_directory(
    machine: SshMachine, kernel: Kernel, tmp_path: Path, figure: Callable[[str, str, str, bool], None]
) -> None:
    for number in range(9):
        (tmp_path / f"part{number}.bin").write_bytes(os.urandom(10_000_000))
    kernel.run(f"more = {{'context_dir': {str(tmp_path)!r}}}")
    kernel.run(_SUBMIT.format(url=machine.address))
    new = "sum(row.size for row in experiment.report if row.status == 'new' and row.note == 'context directory')"
    first = int(kernel.run("from det_native.client.http_source import HttpSource", new))
    kernel.run("experiment.wait(show='none')")
    kernel.run(_SUBMIT.format(url=machine.address))
    second = int(kernel.run("experiment.wait(show='none')", new))
    kernel.run("more = {}")
    what = f"blobs that a second submit of an unchanged directory sends over SSH (the first: {first / 1e6:.0f} MB)"
    figure(what, f"{second} B", "0 B", second == 0)


def test_a_large_checkpoint(machine: SshMachine, kernel: Kernel, tmp_path: Path, paired: Any) -> None:
    kernel.run(_LARGE.format(url=machine.address))
    files = [path for path in machine.home_there.path.glob("checkpoints/*/**/*") if path.is_file()]
    large = max(files, key=lambda path: path.stat().st_size)
    assert large.stat().st_size > 999_000_000
    number = iter(range(1000))

    def ours() -> float:
        target = tmp_path / str(next(number))
        code = f"begin = time.perf_counter(); checkpoint.download({str(target)!r}); took = time.perf_counter() - begin"
        took = float(kernel.run(code, "took"))
        subprocess.run(["rm", "-rf", str(target)], check=True)
        return took

    def scp() -> None:
        source = f"{machine.user.pw_name}@127.0.0.1:{large}"
        target = tmp_path / "scp.bin"
        ssh = str(machine.folder / "bin" / "ssh")
        subprocess.run(["scp", "-O", "-q", "-S", ssh, "-P", str(machine.port), source, str(target)], check=True)
        target.unlink()

    paired(
        "a checkpoint of 1 GB downloaded over SSH and verified, over `scp` of its file",
        ours,
        scp,
        goal=1 / 0.8,
        rounds=3,
        value=lambda result, seconds: result if isinstance(result, float) else seconds,
    )
