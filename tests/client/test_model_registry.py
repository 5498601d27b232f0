"""Models and their versions from Python and the command line, against a real master."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from master_parts import Master, Worker

import det_native as det
from det_native.client.command import cli
from det_native.client.handles import Checkpoint
from det_native.errors import (
    ArgumentError,
    CheckpointCorruptError,
    CheckpointNotFoundError,
    NotFoundError,
    RequestError,
)


def trained(master: Master, losses: tuple[float, ...] = (0.3, 0.1, 0.2)) -> tuple[int, Worker]:
    """Have an experiment train that has a checkpoint for each loss."""
    storage = {"save_experiment_best": 9, "save_trial_latest": 9}
    number = int(master.create({"checkpoint_storage": storage})["id"])
    worker = Worker(master, master.world.wait_for_jobs(1)[-1])
    worker.start()
    for place, loss in enumerate(losses, 1):
        worker.validate(10 * place, loss=loss, accuracy=1 - loss * place)
        worker.checkpoint(10 * place)
    return number, worker


def det_command(*arguments: str, code: int = 0) -> str:
    result = CliRunner().invoke(cli, arguments, catch_exceptions=True)
    assert result.exit_code == code, (result.output, result.exception)
    return result.output


def test_a_model_lives_from_python(named_master: Master) -> None:
    number, _ = trained(named_master)
    experiment = det.experiment(number)
    best, last = experiment.top_checkpoint(), experiment.select_checkpoint(latest=True)
    model = det.create_model("digits", "Figures", {"data": "v2"}, ["baseline"])
    assert (model.name, model.description, model.metadata, model.labels) == (
        "digits",
        "Figures",
        {"data": "v2"},
        ["baseline"],
    )
    assert model.get_version() is None
    first = model.register_version(best, "night run", stage="staging")
    second = model.register_version(last.uuid)
    assert (first.version, second.version) == (1, 2)
    assert det.model("digits").version(1).checkpoint.uuid == best.uuid
    assert [one.version for one in model.versions] == [2, 1]
    newest = model.get_version()
    assert newest is not None
    assert newest.version == 2
    first.stage, first.notes, first.labels = "production", "# Notes", ["a"]
    first.add_metadata({"by": "me", "numbers": [1, 2]})
    first.remove_metadata(["by"])
    again = det.model("digits").version(1)
    assert (again.stage, again.notes, again.labels, again.metadata) == (
        "production",
        "# Notes",
        ["a"],
        {"numbers": [1, 2]},
    )
    assert (best.model_name, best.model_version) == ("digits", 1)
    model.name = "figures"
    assert [one.name for one in det.models()] == ["figures"]
    model.archive()
    assert det.models() == []
    assert [one.name for one in det.models(archived=True)] == ["figures"]
    with pytest.raises(RequestError, match="is archived"):
        model.register_version(best)
    with pytest.raises(RequestError, match="has 2 versions"):
        model.delete()
    model.version(2).delete()
    with pytest.raises(NotFoundError, match="no version 2 any more"):
        model.version(2)
    model.delete(versions=True)
    with pytest.raises(NotFoundError, match="no model 'figures'"):
        det.model("figures")


@pytest.mark.long
def test_determineds_client_finds_models(named_master: Master) -> None:
    importlib.import_module("det_native.compat")
    from determined.experimental import Determined, ModelOrderBy, ModelSortBy

    client = Determined()
    for name in ("a", "b", "c"):
        client.create_model(name, description=f"the {name}", metadata={"x": 1})
    down = client.get_models(sort_by=ModelSortBy.NAME, order_by=ModelOrderBy.DESC)
    assert [model.name for model in down] == ["c", "b", "a"]
    assert [model.name for model in client.get_models(description="THE B")] == ["b"]
    assert client.get_model("a").to_json()["metadata"] == {"x": 1}
    number, _ = trained(named_master)
    checkpoint = client.get_experiment(number).top_checkpoint()
    assert client.get_model("a").register_version(checkpoint.uuid).version == 1
    assert checkpoint.validation["metrics"]["validationMetrics"]["loss"] == 0.1
    assert isinstance(checkpoint, det.experimental.Checkpoint)
    assert det.experimental.TrialReference is det.experimental.Trial


def test_arguments_that_cannot_be_are_told(named_master: Master) -> None:
    wrong: list[tuple[Any, str]] = [
        (lambda: det.create_model(""), "The name of a model is a text"),
        (lambda: det.create_model("a/b"), "no slash"),
        (lambda: det.create_model("a", labels="abc"), r"labels must be a list of texts"),
        (lambda: det.create_model("a", metadata=[1]), "metadata must be a dictionary"),
        (lambda: det.create_model("a", metadata={"x": object()}), r"metadata\['x'\] must be of plain values"),
        (lambda: det.models(sort_by="size"), "sort_by must be one of 'name'"),
        (lambda: det.model(3), "The name of a model is a text"),  # type: ignore[arg-type]
    ]
    for call, text in wrong:
        with pytest.raises(ArgumentError, match=text):
            call()


def test_names_versions_and_stages_that_are_wrong_are_told(named_master: Master) -> None:
    model = det.create_model("digits")
    with pytest.raises(RequestError, match="There is a model 'digits' already"):
        det.create_model("digits")
    with pytest.raises(NotFoundError, match="has no version 7"):
        model.version(7)
    with pytest.raises(ArgumentError, match="version must be the number"):
        model.version("newest")  # type: ignore[arg-type]
    for number in (0, -2, True):
        with pytest.raises(ArgumentError, match="version must be the number"):
            model.get_version(number)
    with pytest.raises(NotFoundError, match="There is no checkpoint 0000"):
        model.register_version("0000")
    with pytest.raises(ArgumentError, match="takes a checkpoint or its uuid"):
        model.register_version(3)  # type: ignore[arg-type]
    number, _ = trained(named_master)
    with pytest.raises(ArgumentError, match="'staging', 'production', 'archived', not 5"):
        model.register_version(det.experiment(number).top_checkpoint(), stage=5)  # type: ignore[arg-type]


def test_one_checkpoint_is_selected_in_exactly_one_way(named_master: Master) -> None:
    number, _ = trained(named_master)
    experiment = det.experiment(number)
    for owner in (experiment, experiment.trials[0]):
        assert owner.select_checkpoint(best=True).batch == 20
        assert owner.select_checkpoint(latest=True).batch == 30
        assert owner.select_checkpoint(best=True, sort_by="accuracy", smaller_is_better=True).batch == 30
        known = owner.checkpoints[0]
        assert owner.select_checkpoint(uuid=known.uuid).uuid == known.uuid
        wrong = [
            ({}, "none of them is given"),
            ({"latest": True, "best": True}, "latest and best are given"),
            ({"best": True, "sort_by": "loss"}, "smaller_is_better is missing"),
            ({"best": True, "smaller_is_better": True}, "sort_by is missing"),
            ({"latest": True, "sort_by": "loss", "smaller_is_better": True}, "do not go with latest"),
        ]
        for arguments, text in wrong:
            with pytest.raises(ArgumentError, match=text):
                owner.select_checkpoint(**arguments)  # type: ignore[arg-type]
        with pytest.raises(CheckpointNotFoundError):
            owner.select_checkpoint(uuid="nobodys")


def test_a_checkpoint_is_noted_pinned_verified_and_deleted(named_master: Master, tmp_path: Path) -> None:
    number, worker = trained(named_master)
    first, second, last = det.experiment(number).checkpoints
    first.add_metadata({"seen": True, "by": "me"})
    first.remove_metadata(["by", "never there"])
    assert det.experiment(number).checkpoint(first.uuid).metadata == {"seen": True}
    assert first.pin().pinned
    with pytest.raises(RequestError, match="it is pinned; unpin it first"):
        first.delete()
    with pytest.raises(RequestError, match="may have to continue from it"):
        last.delete()
    assert first.verify() is first
    weights = Path(worker.job.checkpoints, second.uuid, "weights")
    weights.write_text("else" * 4)
    with pytest.raises(CheckpointCorruptError, match="weights"):
        second.verify()
    first.unpin()
    first.delete()
    assert not Path(worker.job.checkpoints, first.uuid).exists()
    assert first.state == "DELETED"
    with pytest.raises(CheckpointNotFoundError, match="was deleted"):
        first.verify()
    assert [one.uuid for one in det.experiment(number).checkpoints] == [second.uuid, last.uuid]
    with pytest.raises(RequestError, match="nothing to pin"):
        first.pin()


@pytest.mark.long
def test_what_is_known_of_a_checkpoint(named_master: Master, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    number, _ = trained(named_master)
    checkpoint = det.experiment(number).top_checkpoint()
    assert checkpoint.batch_number == 20
    assert checkpoint.experiment_id == number
    assert checkpoint.experiment_config["searcher"]["metric"] == "loss"
    assert checkpoint.framework == "torch-2"
    assert checkpoint.format == "cloudpickle"
    assert checkpoint.resources == {"weights": len("weights after 20")}
    assert checkpoint.start_time <= checkpoint.end_time
    assert (checkpoint.model_name, checkpoint.model_version) == (None, None)
    assert json.loads(json.dumps(checkpoint.to_json()))["batch_number"] == 20
    folder = checkpoint.download(tmp_path / "files")
    noted = json.loads((folder / "metadata.json").read_text())
    assert noted["uuid"] == checkpoint.uuid
    assert noted["experiment_config"] == checkpoint.experiment_config
    assert checkpoint.download(folder) == folder
    with pytest.raises(ArgumentError, match="load_from_path"):
        Checkpoint.load_from_path(tmp_path)
    (folder / "weights").unlink()
    with pytest.raises(CheckpointCorruptError, match="lacks the file 'weights'"):
        Checkpoint.load_from_path(folder)
    with pytest.raises(ArgumentError, match="not weights_only="):
        checkpoint.load(weights_only=True)
    with pytest.raises(ArgumentError, match=r"'torchscript', 'torch\.export', 'safetensors', 'onnx'"):
        checkpoint.export(tmp_path / "out", "keras")
    with pytest.raises(ArgumentError, match="is there already"):
        checkpoint.export(tmp_path, "safetensors")


def test_the_command_line_has_all_of_it(named_master: Master, tmp_path: Path) -> None:
    number, worker = trained(named_master)
    uuids = [one.uuid for one in det.experiment(number).checkpoints]
    assert "There are no models." in det_command("model", "list")
    det_command("model", "create", "digits", "--description", "Figures", "--label", "x", "--metadata", "data=v2")
    made = json.loads(det_command("model", "register-version", "digits", uuids[1], "--stage", "staging", "--json"))
    assert (made["version"], made["stage"], made["checkpoint"]["uuid"]) == (1, "staging", uuids[1])
    det_command("model", "set", "digits", "--version", "1", "--stage", "production", "--metadata", "n=3")
    assert json.loads(det_command("model", "describe", "digits", "--version", "1", "--json"))["metadata"] == {"n": 3}
    assert det_command("model", "list", "--csv").splitlines()[0] == "name,versions,newest,labels,updated,description"
    assert "production" in det_command("model", "list-versions", "digits")
    assert "already" in str(CliRunner().invoke(cli, ["model", "create", "digits"]).exception)
    det_command("checkpoint", "metadata", uuids[0], "--set", "seen=true")
    assert json.loads(det_command("checkpoint", "metadata", uuids[0], "--json")) == {"seen": True}
    det_command("checkpoint", "pin", uuids[0])
    assert "is pinned; unpin" in str(CliRunner().invoke(cli, ["checkpoint", "delete", "-y", uuids[0]]).exception)
    det_command("checkpoint", "unpin", uuids[0])
    det_command("checkpoint", "delete", "-y", uuids[0])
    assert "yes" in det_command("checkpoint", "verify", uuids[1])
    Path(worker.job.checkpoints, uuids[2], "weights").write_text("else")
    assert "weights" in det_command("checkpoint", "verify", uuids[2], code=1)
    assert (tmp_path / "m").exists() or "The files are in" in det_command(
        "model", "download", "digits", "-o", str(tmp_path / "m")
    )
    assert (tmp_path / "m" / "weights").read_text() == "weights after 20"
    loaded = json.loads(det_command("experiment", "download", str(number), "-o", str(tmp_path / "top"), "--json"))
    assert [Path(one["path"]).name for one in loaded] == [uuids[1]]
    assert [one["trial"] for one in loaded] == [f"{number}.1"]
    for trial in (f"{number}.1", str(det.experiment(number).trials[0].id)):
        folder = tmp_path / f"trial {trial}"
        text = det_command("trial", "download", trial, "--uuid", uuids[1][:36], "-o", str(folder), "--csv")
        assert text.splitlines()[1].startswith(f"{uuids[1]},{number}.1,")
        assert (folder / uuids[1] / "metadata.json").is_file()
    refused = CliRunner().invoke(cli, ["trial", "download", f"{number}.2", "-o", str(tmp_path / "none")])
    assert isinstance(refused.exception, NotFoundError)
    assert f"Experiment {number} has no trial 2" in str(refused.exception)
    assert "has a version" in str(CliRunner().invoke(cli, ["model", "delete", "-y", "digits"]).exception)
    det_command("model", "archive", "digits")
    det_command("model", "delete", "-y", "--version", "1", "digits")
    det_command("model", "delete", "-y", "digits")
    assert det.models() == []
