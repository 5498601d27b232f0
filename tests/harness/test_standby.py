"""What a standby's warming up leaves behind."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("framework", ["torch", "keras", "estimator"])
def test_warming_up_leaves_no_thread(framework: str, tmp_path: Path) -> None:
    """Workers are forked afterwards, and a fork has no other thread than the one that forks."""
    code = f"""
from det_harness.worker.standby import warm_up
from det_harness.worker.zygote import other_threads, without_threads
with without_threads():
    warm_up({framework!r}, "cpu")
    import gc, sys
    print("threads", other_threads(), gc.isenabled(), {{"torch", "tensorflow"}} & set(sys.modules) != set())
"""
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=False)
    assert done.stdout.splitlines()[-1] == "threads 0 True True", done.stderr
