"""Folders in the shapes of Determined's public tutorials: each of their configurations is read, and submitted."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest
import yaml
from master_parts import Master

from det_native.experimental import client
from det_native.schema.checks import counts_by_itself
from det_native.schema.lengths import UNTOLD
from det_native.schema.loading import ConfigurationWarning, load_config

FOLDERS = Path(__file__).parents[2] / "determined_0_38"
CONFIGURATIONS = sorted(FOLDERS.glob("*/*.yaml"), key=str)
#: What is said of fields that have no effect here.
SAID = {
    "distributed_launch/distributed.yaml": ["resources.shm_size", "environment.image"],
    "package/const.yaml": ["bind_mounts", "resources.resource_pool", "workspace"],
}


def name_of(path: Path) -> str:
    return path.relative_to(FOLDERS).as_posix()


@pytest.mark.parametrize("path", CONFIGURATIONS, ids=name_of)
def test_a_folder_is_read_and_submitted(sdk_master: Master, path: Path) -> None:
    written = yaml.safe_load(path.read_text())
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ConfigurationWarning)
        experiment = client.create_experiment(path, path.parent)
    said = " ".join(str(each.message) for each in caught if issubclass(each.category, ConfigurationWarning))
    fields = SAID.get(name_of(path), [])
    assert all(field in said for field in fields), said
    assert fields or "no effect here" not in said
    assert experiment.name == written["name"]
    assert experiment.config["searcher"]["name"] == written["searcher"]["name"]
    job = sdk_master.world.wait_for_jobs(1)[0]
    assert set(written.get("hyperparameters", {})) == set(job.hparams)
    program = experiment.source.bundle(experiment.id).program
    assert program.kind == ("command" if counts_by_itself(written) else "cells")
    experiment.kill()


def test_what_the_ignore_file_names_is_not_sent(sdk_master: Master) -> None:
    folder = FOLDERS / "package"
    with pytest.warns(ConfigurationWarning, match=r"startup-hook\.sh is not run"):
        experiment = client.create_experiment(folder / "const.yaml", folder)
    files = {file.path for file in experiment.source.bundle(experiment.id).files}
    assert {"rates/train.py", "rates/rows.csv"} <= files
    assert not {"keys.secret", "notes/draft.txt"} & files
    experiment.kill()


@pytest.mark.parametrize("path", CONFIGURATIONS, ids=name_of)
def test_what_a_command_does_not_say_is_left_to_its_code(path: Path) -> None:
    written = yaml.safe_load(path.read_text())
    if not counts_by_itself(written):
        return
    loaded = load_config(
        path, framework="core", defaults={"searcher.max_length": {"batches": UNTOLD.units}}, warn=False
    )
    searcher = written["searcher"]
    expected = searcher.get("max_time") or next(iter(searcher.get("max_length", {}).values()), UNTOLD.units)
    assert loaded.searcher.max_length.units == expected
