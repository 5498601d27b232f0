"""Paths that a program reads, looked for where it runs."""

from __future__ import annotations

from pathlib import Path

import pytest
from det_harness.program.reads import check_reads, unreadable

from det_native.capture.missing_files import reads_elsewhere
from det_native.errors import BundleCheckError
from det_native.schema.manifests import ReadEntry


def test_paths_are_looked_for(tmp_path: Path) -> None:
    reads = [
        ReadEntry(path=name, where=f"line {i}") for i, name in enumerate([str(tmp_path), "s3://a/b", "/not/there"])
    ]
    [problem] = unreadable(reads)
    assert str(problem).startswith("line 2: reads '/not/there', which on the machine of the workers is not there")
    with pytest.raises(BundleCheckError, match="line 2: reads '/not/there'"):
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
        ("/data/pictures", "[1]", 2),
        ("~/notes.txt", "[1]", 3),
    ]
