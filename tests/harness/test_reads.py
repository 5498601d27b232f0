"""Paths and URLs that a program reads, looked for where it runs."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from det_harness.program.reads import check_reads, unreadable

from det_native.capture.missing_files import reads_elsewhere
from det_native.errors import BundleCheckError
from det_native.schema.manifests import ReadEntry


class _Answers(http.server.BaseHTTPRequestHandler):
    def do_HEAD(self) -> None:
        self.send_response({"/there.csv": 200, "/for-others.csv": 403}.get(self.path, 404))
        self.end_headers()

    def log_message(self, *arguments: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[str]:
    with http.server.HTTPServer(("127.0.0.1", 0), _Answers) as serving:
        thread = threading.Thread(target=serving.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{serving.server_port}"
        serving.shutdown()
        thread.join()


def test_urls_and_paths(server: str, tmp_path: Path) -> None:
    there = tmp_path / "there.txt"
    there.touch()
    names = [
        f"{server}/there.csv",
        f"{server}/for-others.csv",
        f"{server}/gone.csv",
        "http://127.0.0.1:9/a",
        "s3://a/b",
    ]
    reads = [ReadEntry(path=name, where=f"line {i}") for i, name in enumerate([*names, str(there), "/not/there"])]
    found = [str(problem) for problem in unreadable(reads, urls=True)]
    assert len(found) == 3
    assert found[0].startswith(f"line 2: reads '{server}/gone.csv', which on the machine of the workers is not there (")
    assert "cannot be reached" in found[1]
    assert "'/not/there'" in found[2]
    with pytest.raises(BundleCheckError, match="line 6: reads '/not/there'"):
        check_reads(reads)
    check_reads(reads[:-1])


@pytest.mark.parametrize(
    "source",
    [
        "open('/data/x.bin', 'w')",
        "import os\nif os.path.exists('/data/x.csv'):\n    pd.read_csv('/data/x.csv')",
        "try:\n    open('/data/x')\nexcept OSError:\n    pass",
        "open('/dev/urandom', 'rb')",
        "open('data/x.csv')",
        "print('/data/x')",
        "open(f'/data/{name}.csv')",
    ],
)
def test_what_a_program_may_do_without_is_not_looked_for(source: str) -> None:
    assert reads_elsewhere([(source, "[1]")]) == []


def test_what_a_program_reads_elsewhere() -> None:
    source = "pd.read_csv('https://a.b/c.csv')\nos.listdir('/data/pictures')\nPath('~/notes.txt').read_text()"
    assert reads_elsewhere([(source, "[1]")]) == [
        ("https://a.b/c.csv", "[1]", 1),
        ("/data/pictures", "[1]", 2),
        ("~/notes.txt", "[1]", 3),
    ]
