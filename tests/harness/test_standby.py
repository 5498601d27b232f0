"""What a standby's warming up leaves behind."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow


def test_warming_up_leaves_no_thread(tmp_path: Path) -> None:
    """Workers are forked afterwards, and a fork has no other thread than the one that forks."""
    code = """
from det_harness.worker.standby import warm_up
from det_harness.worker.zygote import other_threads, without_threads
import gc, sys
for framework, module in (("torch", "torch"), ("keras", "tensorflow"), ("estimator", "tensorflow")):
    with without_threads():
        warm_up(framework, "cpu")
        print(framework, "threads", other_threads(), gc.isenabled(), module in sys.modules)
"""
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=False)
    expected = [f"{framework} threads 0 True True" for framework in ("torch", "keras", "estimator")]
    assert [line for line in done.stdout.splitlines() if " threads " in line] == expected, done.stderr
