"""What a standby's warming up leaves behind."""

import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("framework", ["torch", "keras", "estimator"])
def test_warming_up_leaves_no_thread(framework: str) -> None:
    """Workers are forked afterwards, and a fork has no other thread than the one that forks."""
    code = f"""
from det_harness.worker.standby import warm_up
from det_harness.worker.zygote import other_threads, without_threads
with without_threads():
    warm_up({framework!r}, "cpu")
    import gc, sys
    print("threads", other_threads(), gc.isenabled(), {{"torch", "tensorflow"}} & set(sys.modules) != set())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert done.stdout.splitlines()[-1] == "threads 0 True True", done.stderr
