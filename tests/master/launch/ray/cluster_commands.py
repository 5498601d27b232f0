"""Runs the commands of ``docs/cluster.md``: ``cluster_commands.py FOLDER ADDRESS``, alone on a machine.

Each is run as it stands there, but for what stands for something else, in the order of the document; what each has
printed is printed as JSON, a line each. A folder of Ray's own needs a short path.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[4]
sys.path.append(str(ROOT / "tests"))

from s3_server import S3, running_s3  # noqa: E402 (a folder of tests is no package)

TEXT = (ROOT / "docs" / "cluster.md").read_text("utf-8")
_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
BLOCKS = [text.strip() for language, text in _FENCE.findall(TEXT) if language in ("", "sh", "bash")]
#: Of a table: there they are alone in backquotes.
SHORT = ["det up --launcher ray --ray-address ray://127.0.0.1:10001"]
#: What cannot be run here, and why.
NOT_HERE = {
    "pip install 'det-native[ray,keras2]'      # for PyTorch: 'det-native[ray,torch]'": (
        "it is installed from an index of packages; which extras it has is tested"
    ),
    "det up --slots cuda:1": "there is no GPU",
    "det up --service": "there is no systemd of a user's own; tests/client/test_service_unit.py has what it writes",
}
PATIENCE = 120.0


class Machine:
    """Where the commands are run: each master in a home of its own."""

    def __init__(self, folder: Path, address: str) -> None:
        self._address = address
        self._number = 0
        (folder / "shims").mkdir()
        # Every process of Ray imports it where it is installed, and that takes seconds; all do without.
        (folder / "shims" / "rfc3987_syntax.py").write_text('raise ImportError("not in tests")\n')
        programs = folder / "bin"
        programs.mkdir()
        for name, module in (("det", "det_native.client.command"), ("ray", "ray.scripts.scripts")):
            path = programs / name
            path.write_text(f'#!/bin/sh\nexec {sys.executable} -m {module} "$@"\n')
            path.chmod(0o755)
        self._folder = folder
        self._environment = {
            **os.environ,
            "HOME": str(folder),
            "TMPDIR": str(folder),
            "RAY_TMPDIR": str(folder),
            "PATH": f"{programs}:{os.environ['PATH']}",
            "PYTHONPATH": str(folder / "shims"),
            "RAY_worker_niceness": "0",
            "RAY_enable_worker_prestart": "0",
            "DET_HOME": str(folder / "home-0"),
        }
        for name in ("DET_LAUNCHER", "DET_SLOTS", "DET_MASTER", "RAY_ADDRESS", "RAY_AUTH_MODE", "RAY_AUTH_TOKEN"):
            self._environment.pop(name, None)

    def run(self, text: str, **variables: str) -> str:
        """Run a block; a master that it starts is the only one."""
        if re.search(r"^det up", text, re.MULTILINE):
            self.down()
            self._number += 1
            self._environment["DET_HOME"] = str(self._folder / f"home-{self._number}")
        kept = [line for line in text.splitlines() if line not in NOT_HERE]
        filled = "\n".join(kept).replace("HEAD:", f"{self._address}:")
        printed = self._bash(filled, **variables)
        # On a machine of one's own it would be in the shell.
        if "RAY_AUTH_MODE=token" in text:
            self._environment["RAY_AUTH_MODE"] = "token"
        return printed

    def wait_for_machines(self, count: int) -> list[dict[str, Any]]:
        """Wait until the master has so many machines with slots; return them."""
        deadline = time.monotonic() + PATIENCE
        while True:
            printed = self._bash("det nodes --json")
            machines: list[dict[str, Any]] = json.loads(printed.splitlines()[-1])  # there may be warnings before it
            if len([machine for machine in machines if machine["slots"]]) == count:
                return machines
            assert time.monotonic() < deadline, machines
            time.sleep(0.2)

    def down(self) -> None:
        """End the master."""
        if self._number:
            self._bash("det down --kill")

    def _bash(self, text: str, **variables: str) -> str:
        began = time.monotonic()
        with (self._folder / "printed").open("w+") as output:  # what is started lives on with it
            done = subprocess.run(
                ["bash", "-ec", text],
                env=self._environment | variables,
                cwd=self._folder,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                timeout=PATIENCE,
                check=False,
            )
            output.seek(0)
            printed = output.read()
        print(json.dumps({"ran": text, "printed": printed, "seconds": time.monotonic() - began}), flush=True)
        assert done.returncode == 0, f"{text}\n{printed}"
        return printed


def main() -> None:
    """Run them."""
    folder = Path(sys.argv[1])
    machine = Machine(folder, sys.argv[2])
    (folder / "big.csv").write_text("1,2\n" * 1000)
    with running_s3() as s3:
        for bucket in ("bucket", "training"):
            s3.files().mkdir(bucket)
        for block in BLOCKS:
            machine.run(_with_keys(block, s3), DET_STORAGE_OPTIONS=json.dumps(s3.options))
            if "ray start --address" in block:
                machine.wait_for_machines(2)
        for command in SHORT:
            assert f"`{command}`" in TEXT
            machine.run(command)
            machine.wait_for_machines(2)
        machine.down()


def _with_keys(block: str, s3: S3) -> str:
    placeholders = {"name": s3.options["key"], "word": s3.options["secret"], "http://minio.lan:9000": s3.endpoint}
    for placeholder, own in placeholders.items():
        block = block.replace(f'"{placeholder}"', json.dumps(own))
    return block


if __name__ == "__main__":
    main()
