"""An S3 of this machine: moto's server in a process, spoken to over HTTP by whoever has its address."""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest

_PROGRAM = """
import logging, sys
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import make_server
logging.getLogger("werkzeug").setLevel(logging.ERROR)
server = make_server("127.0.0.1", 0, DomainDispatcherApplication(create_backend_app), threaded=True)
print(server.server_port, flush=True)
server.serve_forever()
"""
KEY, SECRET = "a-key-nobody-may-see", "a-secret-nobody-may-see"


@dataclass(frozen=True)
class S3:
    """The server.

    Attributes
    ----------
    endpoint : str
        ``http://127.0.0.1:port``.
    """

    endpoint: str

    @property
    def options(self) -> dict[str, Any]:
        """What fsspec needs to get in."""
        return {"key": KEY, "secret": SECRET, "endpoint_url": self.endpoint}

    def files(self) -> Any:
        """Return its files, as fsspec shows them to a process that has looked at nothing before."""
        import fsspec

        return fsspec.filesystem("s3", use_listings_cache=False, **self.options)

    def bucket(self) -> str:
        """Make a new bucket, and return its name."""
        name = f"bucket-{secrets.token_hex(6)}"
        self.files().mkdir(name)
        return name

    def sizes(self, bucket: str) -> dict[str, int]:
        """Return the bytes of every object of a bucket, by its key."""
        found = self.files().find(bucket, detail=True)
        return {name.partition("/")[2]: int(facts["size"]) for name, facts in found.items()}


@contextmanager
def running_s3(*, free_requests: int | None = None) -> Iterator[S3]:
    """Run the server in a process of its own; after so many requests, if given, it knows no key any more."""
    for module in ("moto", "s3fs"):
        pytest.importorskip(module, reason=f"{module} is not installed: see [dependency-groups] in pyproject.toml")
    setting = {} if free_requests is None else {"INITIAL_NO_AUTH_ACTION_COUNT": str(free_requests)}
    environment = {**os.environ, **setting}
    with subprocess.Popen(
        [sys.executable, "-c", _PROGRAM], stdout=subprocess.PIPE, text=True, env=environment
    ) as process:
        try:
            assert process.stdout is not None
            yield S3(f"http://127.0.0.1:{int(process.stdout.readline())}")
        finally:
            process.terminate()
            process.wait()
            forget_connections()


def forget_connections() -> None:
    """Close what fsspec keeps open to S3 in this process."""
    s3fs = sys.modules.get("s3fs")
    if s3fs is not None:
        s3fs.S3FileSystem.clear_instance_cache()
