"""``client.create_experiment()``: what reaches the master of a configuration and a folder."""

from __future__ import annotations

import re
import tarfile
from pathlib import Path

import pytest
from master_parts import Master

from det_native.errors import ArgumentError, ConfigurationError
from det_native.experimental import client

TRIAL = """
import torch
from determined.pytorch import DataLoader, PyTorchTrial


class Line(PyTorchTrial):
    def __init__(self, context):
        self.context = context
        self.model = context.wrap_model(torch.nn.Linear(1, 1))
        self.optimizer = context.wrap_optimizer(torch.optim.SGD(self.model.parameters(), lr=context.get_hparam("lr")))

    def build_training_data_loader(self):
        return DataLoader(torch.zeros(8, 1), self.context.get_per_slot_batch_size())

    build_validation_data_loader = build_training_data_loader

    def train_batch(self, batch, epoch_idx, batch_idx):
        return {"loss": self.model(batch).mean()}

    def evaluate_batch(self, batch):
        return {"validation_loss": 0.0}
"""
CONFIG = {
    "name": "line",
    "entrypoint": "model_def:Line",
    "hyperparameters": {"global_batch_size": 4, "lr": 0.1},
    "searcher": {"name": "single", "metric": "validation_loss", "max_length": {"batches": 100}},
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    code = tmp_path / "code"
    code.mkdir()
    (code / "model_def.py").write_text(TRIAL)
    (code / "notes.txt").write_text("of mine")
    (code / ".detignore").write_text("notes.txt\n")
    return code


def files_of(experiment: client.Experiment) -> list[str]:
    return sorted(file.path for file in experiment.source.bundle(experiment.id).files)


def test_a_folder_is_submitted_with_what_is_included(sdk_master: Master, folder: Path, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "rows.csv").write_text("1\n")
    (tmp_path / "helper.py").write_text("")
    includes: list[str | Path] = [tmp_path / "helper.py", str(tmp_path / "data")]
    experiment = client.create_experiment(CONFIG, str(folder), includes=includes)
    assert experiment.id in [each.id for each in client.list_experiments()]
    assert experiment.name == "line"
    assert experiment.config["hyperparameters"]["lr"]["val"] == 0.1
    assert files_of(experiment) == ["data/rows.csv", "helper.py", "model_def.py"]
    assert sdk_master.world.wait_for_jobs(1)[0].experiment_id == experiment.id
    with tarfile.open(experiment.download_code(tmp_path / "code of it")) as archive:
        assert sorted(archive.getnames()) == files_of(experiment)
        content = archive.extractfile("data/rows.csv")
        assert content is not None
        assert content.read() == b"1\n"
    experiment.kill()
    assert experiment.wait() == client.ExperimentState.CANCELED  # type: ignore[comparison-overlap]


def test_the_configuration_is_a_dictionary_or_a_file(sdk_master: Master, folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "const.yaml"
    path.write_text(re.sub(r"'|None", "", str(CONFIG)).replace("model_def:Line", "'model_def:Line'"))
    for given in (path, str(path)):
        assert client.create_experiment(given, folder).name == "line"
    with pytest.raises(ArgumentError, match="config must be a dictionary"):
        client.create_experiment(3, folder)  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="max_length"):
        client.create_experiment({**CONFIG, "searcher": {"name": "single", "metric": "a"}}, folder)


@pytest.mark.parametrize(("arguments", "says"), [({"template": "a"}, "no templates"), ({"project_id": 3}, "names")])
def test_what_chooses_something_that_is_not_there_is_refused(
    sdk_master: Master, folder: Path, arguments: dict[str, object], says: str
) -> None:
    with pytest.raises(ArgumentError, match=says):
        client.create_experiment(CONFIG, folder, **arguments)  # type: ignore[arg-type]


def test_without_a_folder_there_is_only_what_is_included(sdk_master: Master, folder: Path) -> None:
    experiment = client.create_experiment(CONFIG, includes=[folder / "model_def.py"])
    assert files_of(experiment) == ["model_def.py"]
    for includes, says in ((["nothing.py"], "no such file"), ([folder / "model_def.py"], "in what is sent already")):
        with pytest.raises(ArgumentError, match=says):
            client.create_experiment(CONFIG, folder, includes)
