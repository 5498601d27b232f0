"""Sets of data that have a name: a new one of the same name takes the place of the old one."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from click.testing import CliRunner
from master_parts import Master, manifest

from det_native.client.command import cli
from det_native.storage.datasets import PIECE


def put(master: Master, name: str, content: bytes) -> dict[str, Any]:
    """Bring a file, as `det data put` does; return its entry."""
    sha256 = hashlib.sha256(content).hexdigest()
    body = PIECE.pack(bytes.fromhex(sha256), len(content), 0, len(content)) + content
    master.client.post("/api/v1/data/contents", content=body).raise_for_status()
    entry = {"path": "big.csv", "sha256": sha256, "size": len(content)}
    master.client.post("/api/v1/data", json={"name": name, "files": [entry]}).raise_for_status()
    return entry


def is_there(master: Master, entry: dict[str, Any]) -> bool:
    contents = Path(master.get("/master")["home"]) / "data" / "contents"
    return (contents / entry["sha256"][:2] / entry["sha256"]).exists()


def test_what_a_name_had_before_goes(master: Master) -> None:
    first = put(master, "big.csv", b"first")
    put(master, "copy", b"shared")
    shared = put(master, "big.csv", b"shared")
    assert (is_there(master, first), is_there(master, shared)) == (False, True)
    put(master, "big.csv", b"third")
    assert is_there(master, shared), "of another name"


def test_files_that_a_name_loses_are_counted_and_told(master: Master, tmp_path: Path) -> None:
    folder = tmp_path / "pictures"
    folder.mkdir()
    url, token = str(master.client.base_url).rstrip("/"), master.client.headers["authorization"].removeprefix("Bearer ")

    def bring(**contents: str) -> str:
        for name, content in contents.items():
            (folder / name).write_text(content)
        ran = CliRunner().invoke(cli, ["-m", url, "data", "put", str(folder)], env={"DET_TOKEN": token})
        assert ran.exit_code == 0, ran.output
        return ran.stderr

    assert bring(a="first", b="second") == ""
    assert bring() == ""
    assert bring(c="third") == "", "more files of the same name lose none"
    assert "Warning: 1 file that had this name before is not in it any more; --name keeps both." in bring(a="other")


def test_what_an_experiment_reads_stays(master: Master) -> None:
    read = put(master, "big.csv", b"first")
    body = {**manifest().content(), "links": [read]}
    bundle = master.client.post("/api/v1/bundles", json=body).json()
    master.create(bundle_id=bundle["id"])
    put(master, "big.csv", b"second")
    assert is_there(master, read)
    refused = master.client.delete("/api/v1/data/big.csv")
    assert refused.status_code == 200, "that is the second content, which nobody reads"


def test_sizes_that_no_file_has_are_refused_and_named(master: Master) -> None:
    for size in (-1, 2**63, 10**400):
        for route, body in (
            ("missing", {"files": [{"sha256": "0" * 64, "size": size}]}),
            ("find", {"sizes": [size]}),
        ):
            refused = master.client.post(f"/api/v1/data/{route}", json=body)
            assert refused.status_code == 422, (route, size)
            assert "size" in refused.json()["problems"][0]["where"]


def test_more_than_there_is_room_for_is_refused_before_it_is_sent(master: Master) -> None:
    wanted = {"files": [{"sha256": "0" * 64, "size": 1 << 60}]}
    refused = master.client.post("/api/v1/data/missing", json=wanted)
    assert refused.status_code == 413
    assert "Make room there" in refused.json()["error"]
