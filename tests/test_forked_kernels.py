"""A kernel that is forked behaves as one that has just been started: libraries, environment, signals, end."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest
from jupyter_client.blocking.client import BlockingKernelClient
from jupyter_client.manager import KernelManager

pytestmark = pytest.mark.slow


class Notebook:
    """A kernel, and what its cells print."""

    def __init__(self, manager: KernelManager, client: BlockingKernelClient) -> None:
        self.manager = manager
        self.client = client

    def printed(self, code: str) -> str:
        """Execute a cell; return what it prints, or the end of its traceback."""
        texts: list[str] = []

        def note(message: dict[str, Any]) -> None:
            content = message["content"]
            texts.append(content.get("text") or content.get("evalue", ""))

        self.client.execute_interactive(code, timeout=100, output_hook=note)
        return "".join(texts).strip()


@contextmanager
def notebook(folder: Path, **variables: str) -> Iterator[Notebook]:
    manager = KernelManager(kernel_name="python3")
    manager.start_kernel(cwd=str(folder), env={**os.environ, **variables})
    client = manager.blocking_client()
    client.start_channels()
    try:
        client.wait_for_ready(timeout=200)
        yield Notebook(manager, client)
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


def test_it_has_imported_no_library_and_has_its_own_environment(tmp_path: Path) -> None:
    with notebook(tmp_path, DET_TEST_OF_FORKS="of this kernel") as kernel:
        loaded = "import sys; print([name for name in ('numpy', 'torch', 'tensorflow') if name in sys.modules])"
        assert kernel.printed(loaded) == "[]"
        assert kernel.printed("import numpy as np\n" + loaded) == "['numpy']"
        assert kernel.printed("print(int(np.ones(3).sum()), np.__spec__.origin.endswith('__init__.py'))") == "3 True"
        assert kernel.printed("from numpy import linalg; print(linalg is np.linalg)") == "True"
        assert kernel.printed("import os; print(os.getcwd())") == str(tmp_path)
        number = int(kernel.printed("print(os.getpid())"))
        assert psutil.Process(number).environ()["DET_TEST_OF_FORKS"] == "of this kernel"
        assert "DET_TEST_KERNELS" not in psutil.Process(number).environ()


def test_what_nobody_has_seeded_is_drawn_anew_in_each(tmp_path: Path) -> None:
    draws = []
    for _ in range(2):
        with notebook(tmp_path) as kernel:
            draws.append(kernel.printed("import random\nimport numpy as np\nprint(random.random(), np.random.rand())"))
    assert not set(draws[0].split()) & set(draws[1].split())


def test_it_is_interrupted_and_ends_with_what_stands_for_it(tmp_path: Path) -> None:
    with notebook(tmp_path) as kernel:
        process = psutil.Process(int(kernel.printed("import os; print(os.getpid())")))
        kernel.client.execute("print('sleeps', flush=True)\nimport time; time.sleep(200)")
        while kernel.client.get_iopub_msg(timeout=100)["content"].get("text", "").strip() != "sleeps":
            pass
        kernel.manager.interrupt_kernel()
        assert kernel.client.get_shell_msg(timeout=100)["content"]["ename"] == "KeyboardInterrupt"
        kernel.manager.shutdown_kernel(now=True)
        psutil.wait_procs([process], timeout=60)
        assert not process.is_running()


def test_a_kernel_whose_death_is_its_own_doing_is_dead_for_its_manager(tmp_path: Path) -> None:
    with notebook(tmp_path) as kernel:
        provisioner = kernel.manager.provisioner
        assert provisioner is not None
        kernel.client.execute("import os, signal; os.kill(os.getpid(), signal.SIGKILL)")
        psutil.wait_procs([psutil.Process(provisioner.process.pid)], timeout=60)  # type: ignore[attr-defined]
        assert not kernel.manager.is_alive()


def test_where_an_import_would_come_out_otherwise_the_kernel_is_a_fresh_process(tmp_path: Path) -> None:
    with notebook(tmp_path, OMP_NUM_THREADS="7") as kernel:
        assert "ipykernel_launcher" in kernel.printed("print(open('/proc/self/cmdline').read())")
