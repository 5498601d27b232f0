"""A home that an earlier version has made (commit c4b9334) opens with all that it had.

It has three experiments: a Keras training with labels and a description, a random search by PyTorch, and one PyTorch
trial; each with metrics, output and checkpoints.
"""

from __future__ import annotations

import io
import json
import os
import sqlite3
import subprocess
import sys
import tarfile
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import zstandard
from master_parts import running_master

LOADS = """
from det_native.client.handles import Experiment
from det_native.client.http_source import HttpSource
from det_native.client.session import Session

source = HttpSource(Session({url!r}, {token!r}))
net = Experiment(source, 2).top_checkpoint().load()
net = getattr(net, "model", net)
print("PyTorch", net.weight.numel())
model = Experiment(source, 1).top_checkpoint().load()
print("Keras", model.count_params())
"""
OLD = Path(__file__).parent / "homes" / "c4b9334.tar.zst"


@pytest.fixture
def old_home(tmp_path: Path) -> Path:
    """Unpack the home."""
    home = tmp_path / "home"
    with OLD.open("rb") as packed, zstandard.ZstdDecompressor().stream_reader(packed) as stream:
        content = io.BytesIO(stream.read())
    with tarfile.open(fileobj=content) as archive:
        archive.extractall(home, filter="data")
    return home


def rows(home: Path, query: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(home / "det.db")) as connection:
        return connection.execute(query).fetchall()


def test_experiments_trials_metrics_and_output_of_an_older_home_are_all_there(old_home: Path) -> None:
    experiments = rows(old_home, "select id, name, state, created, ended, best_validation from experiments")
    trials = rows(old_home, "select id, experiment_id, state, hparams, best_validation from trials")
    metrics = rows(old_home, 'select trial_id, kind, batch, "values" from metrics')
    output = rows(old_home, "select trial_id, text from logs order by id")
    assert (len(experiments), len(trials), len(metrics), len(output)) == (3, 4, 21, 14)
    with running_master(old_home) as master:
        for number, name, state, created, ended, best in experiments:
            found = master.get(f"/experiments/{number}")
            shown = (found["name"], found["state"], found["created"], found["ended"], found["best_validation"])
            assert shown == (name, state, created, ended, best)
        for number, experiment, state, hparams, best in trials:
            found = master.get(f"/trials/{number}")
            assert (found["experiment_id"], found["state"], found["best_validation"]) == (experiment, state, best)
            assert found["hparams"] == json.loads(hparams)
            assert [line["text"] for line in master.get(f"/trials/{number}/logs", limit=1000)] == [
                text for trial, text in output if trial == number
            ]
            for kind in ("training", "validation"):
                shown = {row["batch"]: row["metrics"] for row in master.get(f"/trials/{number}/metrics", kind=kind)}
                kept = {
                    batch: json.loads(values) for trial, of, batch, values in metrics if (trial, of) == (number, kind)
                }
                assert shown == kept
        assert [trial["number"] for trial in master.get("/experiments/2/trials")] == [1, 2]


def test_labels_and_descriptions_are_taken_from_the_configurations(old_home: Path) -> None:
    with running_master(old_home) as master:
        found = {one["id"]: one for one in master.get("/experiments")}
    assert [(found[number]["description"], found[number]["labels"]) for number in (1, 2, 3)] == [
        ("a training by Keras", ["baseline", "old"]),
        ("a search by PyTorch", ["search"]),
        ("", []),
    ]
    assert not any(one["archived"] for one in found.values())


def test_files_of_checkpoints_of_an_older_home_are_whole(old_home: Path) -> None:
    kept = rows(old_home, "select uuid, experiment_id, manifest from checkpoints where state = 'COMPLETED'")
    assert len(kept) == 4
    with running_master(old_home) as master:
        for uuid, experiment, manifest in kept:
            [shown] = [one for one in master.get(f"/experiments/{experiment}/checkpoints") if one["uuid"] == uuid]
            assert shown["state"] == "COMPLETED"
            assert (shown["pinned"], shown["metadata"]) == (False, {})
            for file in json.loads(manifest)["files"]:
                content = master.client.get(f"/api/v1/checkpoints/{uuid}/files/{file['path']}")
                assert (content.status_code, len(content.content)) == (200, file["size"])


def test_nothing_of_an_older_home_counts_as_unneeded(old_home: Path) -> None:
    with running_master(old_home) as master:
        done = master.client.post("/api/v1/space/clean", json={"kinds": ["blobs", "uploads"]}).json()
        assert [kind["count"] for kind in done["kinds"]] == [0, 0]
        for number in (1, 2, 3):
            bundle = master.get(f"/experiments/{number}")["bundle_id"]
            assert master.client.get(f"/api/v1/bundles/{bundle}/created").status_code == 200


@pytest.mark.long
def test_models_of_an_older_home_load(old_home: Path, tmp_path: Path) -> None:
    with running_master(old_home) as master:
        url = str(master.client.base_url)
        program = LOADS.format(url=url, token=master.token)
        done = subprocess.run(
            [sys.executable, "-c", program],
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
            env={**os.environ, "TMPDIR": str(tmp_path)},
        )
    assert done.stdout.split() == ["PyTorch", "2", "Keras", "3"], done.stderr[-2000:]
