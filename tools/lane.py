"""Run a lane of tests; run what failed in it once more, alone, and say so.

A landing waits for thousands of tests with real processes, and a single one that fails now and then stops it. So one or
two tests that fail have a second try in a process of their own. What passes then is named last, as unstable: its fault,
in the test or in the product, is still there and wants mending. What fails twice fails the lane, and so do three
failures and everything else that ends pytest.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

MOST = 2
SOME_FAILED = 1  # pytest's exit code if tests ran and some failed
NO_TESTS = 5


def run_lane(arguments: Sequence[str], run: Callable[[list[str]], int]) -> int:
    """Run pytest, and perhaps its failed tests again.

    Parameters
    ----------
    arguments : sequence of str
        Of pytest.
    run : callable
        Runs pytest with arguments and returns its exit code.

    Returns
    -------
    int
        The exit code of the lane.
    """
    with tempfile.TemporaryDirectory() as folder:
        cached = [*arguments, "-o", f"cache_dir={folder}"]
        code = run(cached)
        if code == NO_TESTS and "--part" in arguments:  # the tests of these folders are in other parts
            return 0
        failed = _failed(Path(folder))
        if code != SOME_FAILED or not 1 <= len(failed) <= MOST:
            return code
        print(f"\nOnce more, alone: {', '.join(failed)}", flush=True)
        code = run([*cached, "-n", "0", "--last-failed", "--last-failed-no-failures", "none"])
    if code == 0:
        print("\nUNSTABLE: failed beside others, passed alone. The failure above wants mending:", *failed, sep="\n  ")
    return code


def _failed(folder: Path) -> list[str]:
    path = folder / "v" / "cache" / "lastfailed"
    return sorted(json.loads(path.read_text())) if path.is_file() else []


if __name__ == "__main__":
    sys.exit(run_lane(sys.argv[1:], lambda arguments: subprocess.call([sys.executable, "-m", "pytest", *arguments])))
