"""A Determined directory trained, looked at and fetched from the shell, by the commands that its users know."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from journey_kernel import Script
from test_determined_directory import write_directory

from det_native.client.command import cli
from det_native.errors import DetError

pytestmark = pytest.mark.slow

Det = Callable[..., str]


@pytest.fixture
def det(script: Script, tmp_path: Path, environment: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> Det:
    """Run ``det`` in the temporary folder; return what it prints.

    What imports no code of the user's is called in this process.
    """
    monkeypatch.setenv("DET_HOME", environment["DET_HOME"])
    monkeypatch.chdir(tmp_path)

    def run(*words: str, code: int = 0) -> str:
        if words[:2] == ("experiment", "create"):
            done = script("-m", "det_native.client.command", *words, folder=tmp_path, fails=code != 0)
            assert done.returncode == code, f"{done.stdout}\n{done.stderr}"
            return done.stdout if code == 0 else done.stdout + done.stderr
        called = CliRunner().invoke(cli, words, standalone_mode=False)
        if isinstance(called.exception, DetError):
            assert code == 1
            return str(called.exception)
        assert called.exception is None
        assert (called.return_value or 0) == code, called.output
        return called.stdout if code == 0 else called.output

    return run


def data_of(text: str) -> Any:
    return json.loads(text)


def test_a_directory_is_trained_and_its_results_are_fetched(det: Det, tmp_path: Path) -> None:
    write_directory(tmp_path / "mnist")
    # Its own folder is the working directory on the worker, whatever it is here.
    printed = det("experiment", "create", "mnist/const.yaml", "mnist", "--follow", "--config", "searcher.max_length=6")
    number = re.findall(r"Experiment (\d+) is submitted\.", printed)[0]
    assert f"Experiment {number} is Completed." in printed

    assert f"Experiment {number} is Completed." in det("e", "wait", number)
    [trial] = data_of(det("trial", "list", number, "--json"))
    assert (trial["state"], trial["batches"], trial["hparams"]["learning_rate"]) == ("COMPLETED", 6, 1.0)
    assert "learning_rate" in det("t", "list", number)
    rows = data_of(det("trial", "metrics", str(trial["id"]), "--json"))
    assert [row["batch"] for row in rows] == [2, 4, 6]
    table = det("trial", "metrics", str(trial["id"]), "--kind", "training").splitlines()
    assert table[0].split() == ["batch", "loss"]
    assert len(table) == 7
    described = data_of(det("experiment", "describe", number, "--json"))
    assert (described["state"], len(described["trials"])) == ("COMPLETED", 1)
    assert int(number) in [one["id"] for one in data_of(det("e", "list", "--json"))]
    assert data_of(det("experiment", "config", number, "--json"))["searcher"]["max_length"] == {"batches": 6}
    assert re.search(r"(?m)^entrypoint: model_def:MNistTrial$", det("experiment", "config", number))

    [best] = data_of(det("checkpoint", "list", number, "--best", "1", "--json"))
    assert best["uuid"] in det("c", "list", number)
    assert "state_dict.pth" in det("checkpoint", "describe", best["uuid"])
    assert "files are in fetched." in det("checkpoint", "download", best["uuid"], "-o", "fetched")
    assert (tmp_path / "fetched/state_dict.pth").stat().st_size > 0
    assert "files are in fetched." in det("checkpoint", "download", best["uuid"], "-o", "fetched")
    (tmp_path / "fetched/state_dict.pth").write_bytes(b"mine")
    assert "state_dict.pth was changed" in det("checkpoint", "download", best["uuid"], "-o", "fetched", code=1)
    assert det("queue", "list") == "Nothing runs, and nothing waits.\n"
    slots = data_of(det("slot", "list", "--json"))
    assert [(slot["device"], slot["trial_id"]) for slot in slots] == [("cpu", None), ("cpu", None)]

    code = tmp_path / "mnist/data.py"
    code.write_text(f"{code.read_text()}# changed\n")
    words = ("mnist/const.yaml", "mnist", "--json", "--config", "searcher.max_length=6")
    changed = str(data_of(det("experiment", "create", *words))["id"])
    assert f"+++ experiment {changed}: data.py" in det("e", "diff", number, changed)
    assert det("e", "compare", number, changed).endswith("\n+# changed\n")
    assert det("e", "code", changed, "--file", "data.py") == code.read_text()
    assert "class MNistTrial" in det("e", "code", number)


def damage(blobs: Path) -> None:
    """Flip a bit in each blob of a store."""
    for path in blobs.glob("??/*"):
        content = bytearray(path.read_bytes())
        content[-1] ^= 1
        path.write_bytes(content)


@pytest.mark.long
def test_damaged_blobs_of_an_unchanged_directory_are_sent_again(
    det: Det, tmp_path: Path, environment: dict[str, str]
) -> None:
    blobs = Path(environment["DET_HOME"]) / "blobs"
    folder = write_directory(tmp_path / "mnist")
    words = ("mnist/const.yaml", "mnist", "--follow", "--config", "searcher.max_length=2")
    det("experiment", "create", *words)
    damage(blobs)
    again = det("experiment", "create", *words, "--config", "max_restarts=0")
    assert "is Completed." in again
    assert "0 B new" not in again
    damage(blobs)
    (folder / "data.py").write_text((folder / "data.py").read_text() + "# changed\n")
    assert "is Completed." in det("experiment", "create", *words)


@pytest.mark.long
def test_code_of_determined_that_refuses_hyperparameters_gets_others(det: Det, tmp_path: Path) -> None:
    write_directory(tmp_path / "mnist")
    code = tmp_path / "mnist/model_def.py"
    made = "        self.context = context\n"
    assert made in code.read_text()
    refuses = f"{made}        if context.get_hparam('learning_rate') > 0.5:\n"
    refuses += "            raise determined.InvalidHP('the rate is too high')\n"
    code.write_text(f"import determined\n{code.read_text().replace(made, refuses)}")
    search = ["searcher.name=random", "searcher.max_length=2", "searcher.max_trials=2", "max_restarts=0"]
    space = 'hyperparameters.learning_rate={"type": "double", "minval": 0.0, "maxval": 1.0}'
    words = [word for change in (*search, space, "reproducibility.experiment_seed=1") for word in ("--config", change)]
    printed = det("experiment", "create", "mnist/const.yaml", "mnist", "--follow", *words)
    number = re.findall(r"Experiment (\d+) is Completed\.", printed)[0]
    trials = data_of(det("trial", "list", number, "--json"))
    refused = [trial for trial in trials if trial["hparams"]["learning_rate"] > 0.5]
    assert refused
    assert len(trials) == 2 + len(refused)
    assert {(trial["state"], trial["notice"]) for trial in refused} == {
        ("CANCELED", "invalid hyperparameters: the rate is too high")
    }
    assert "invalid hyperparameters: the rate is too high" in det("trial", "list", number)


@pytest.mark.long
def test_a_directory_is_trained_here(det: Det, tmp_path: Path) -> None:
    write_directory(tmp_path / "mnist")
    printed = det("experiment", "create", "mnist/const.yaml", "mnist", "--local")
    name = re.findall(r"Experiment (local-\d+) is Completed\.", printed)[0]
    [checkpoint, *_] = data_of(det("checkpoint", "list", name, "--json"))
    assert "files are in" in det("checkpoint", "download", checkpoint["uuid"])
    assert (tmp_path / "checkpoints" / checkpoint["uuid"] / "state_dict.pth").exists()
    assert [row["batch"] for row in data_of(det("trial", "metrics", f"{name}/1", "--json"))] == [2, 4]


@pytest.mark.long
def test_what_fails_or_is_stopped_ends_with_a_code(det: Det, tmp_path: Path) -> None:
    folder = write_directory(tmp_path / "mnist")
    text = (folder / "model_def.py").read_text()
    (folder / "model_def.py").write_text(text.replace("inputs, labels = batch\n", "raise KeyError('broken')\n", 1))
    printed = det("experiment", "create", "mnist/const.yaml", "mnist", "--test", "--follow", code=1)
    assert "KeyError" in printed
    assert re.search(r"Experiment \d+ is Failed\.", printed)
    (folder / "model_def.py").write_text(text)
    endless = "searcher.max_length={batches: 100000000}"
    number = str(data_of(det("experiment", "create", "mnist/const.yaml", "mnist", "--json", "--config", endless))["id"])
    assert "goes on" in det("experiment", "wait", number, "--timeout", "0.1", code=5)
    waiting = data_of(det("queue", "list", "--json"))
    assert [(row["experiment"], row["slots"]) for row in waiting] == [(int(number), 1)]
    det("experiment", "cancel", number)
    assert f"Experiment {number} is Stopped." in det("experiment", "wait", number, code=4)


@pytest.mark.long
@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("mnist/none.yaml", "mnist"), "none.yaml' does not exist"),
        (("mnist/const.yaml", "nowhere"), "Directory 'nowhere' does not exist"),
        (("mnist/const.yaml", "mnist", "--config", "max_restarts"), "--config max_restarts: write PATH=VALUE"),
        (("mnist/const.yaml", "mnist", "--config", "description.x=1"), "description is no section"),
        (("mnist/const.yaml", "mnist", "--config", "entrypoint=other:Trial"), "there is no module 'other'"),
        (("mnist/const.yaml", "mnist", "--config", "sercher=1"), "Did you mean searcher?"),
        (("mnist/const.yaml", "mnist", "--json", "--local"), "it does not go with"),
    ],
)
def test_what_is_typed_wrong_is_told_in_a_sentence(det: Det, tmp_path: Path, words: tuple[str, ...], told: str) -> None:
    write_directory(tmp_path / "mnist")
    code = 2 if "exist" in told or "not go" in told else 1
    assert told in " ".join(det("experiment", "create", *words, code=code).split())


@pytest.mark.long
def test_a_shell_completes_the_commands(script: Script, environment: dict[str, str], tmp_path: Path) -> None:
    environment |= {"_DET_COMPLETE": "bash_complete", "COMP_WORDS": "det experiment c", "COMP_CWORD": "2"}
    try:
        done = script("-m", "det_native.client.command", folder=tmp_path)
    finally:
        for name in ("_DET_COMPLETE", "COMP_WORDS", "COMP_CWORD"):
            del environment[name]
    assert done.stdout.split() == [f"plain,{name}" for name in ("code", "compare", "config", "continue", "create")]


# The process of the command cannot import the framework; the master and its workers can.
WITHOUT = """
import sys

class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {hidden!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Hidden())
from det_native.client.command import main
main()
"""


@pytest.mark.long
def test_the_framework_need_not_be_installed_where_it_is_submitted(script: Script, tmp_path: Path) -> None:
    folder = write_directory(tmp_path / "mnist")
    command = ("-c", WITHOUT.format(hidden=["torch", "torchvision"]), "e", "create", "mnist/const.yaml", "mnist")
    done = script(*command, "--follow", folder=tmp_path)
    said = "model_def:MNistTrial is not checked here, but on the workers only: .* PyTorch, which is not installed"
    assert re.search(said, done.stdout)
    assert re.search(r"Experiment \d+ is Completed\.", done.stdout)

    code = folder / "model_def.py"
    code.write_text("import my_utlis\n" + code.read_text())
    done = script(*command, folder=tmp_path, fails=True)
    assert "No module named 'my_utlis'" in done.stderr, "the workers have none either"
    assert "submitted" not in done.stdout

    code.write_text("import torch\nclass MNistTrial(torch.nn.Module): pass")
    done = script(*command, folder=tmp_path, fails=True)
    assert "PyTorch, which is not installed in this Python" in done.stdout + done.stderr
    assert "submitted" not in done.stdout
