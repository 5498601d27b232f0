"""A configuration whose entrypoint is a script: what is wrong with it is said before anything is started."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from det_native.client.command import cli
from det_native.core.command import script_of
from det_native.errors import ArgumentError, ConfigurationError, UnsupportedFeatureError
from det_native.experimental.directories import create_from_directory
from det_native.experimental.scripts import entrypoint_words


def test_a_script_on_two_slots_is_told_what_has_two(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import torch\n")
    (tmp_path / "const.yaml").write_text("entrypoint: train.py\nresources: {slots_per_trial: 2}\n")
    with pytest.raises(UnsupportedFeatureError) as told:
        create_from_directory(tmp_path / "const.yaml", tmp_path)
    text = str(told.value)
    assert text.startswith("resources.slots_per_trial: 2, and entrypoint names the script train.py, which has 1 slot")
    assert "Where it calls tf.estimator.train_and_evaluate(), distributed.strategy: tf_config" in text
    assert text.endswith("entrypoint: torchrun train.py")


@pytest.mark.parametrize(
    ("entrypoint", "words"),
    [
        ("model_def:MyTrial", ()),
        ("python3 -m determined.launch.torch_distributed --trial model_def:MyTrial", ()),
        (["python3", "-m", "determined.launch.horovod", "--fusion-threshold-mb", "1", "--", "--trial", "m:T"], ()),
        ("train.py --lr 0.1", ("train.py", "--lr", "0.1")),
        ("python3 train.py 'two words'", ("python3", "train.py", "two words")),
        (["sh", "run.sh", "$HOME"], ("sh", "run.sh", "$HOME")),
        ("sh run.sh $HOME", ("sh", "-c", "sh run.sh $HOME")),
        ("FOO=1 python3 train.py", ("sh", "-c", "FOO=1 python3 train.py")),
        ("python3 train.py --lr=0.1", ("python3", "train.py", "--lr=0.1")),
    ],
)
def test_an_entrypoint_is_a_class_a_script_or_a_command(entrypoint: str | list[str], words: tuple[str, ...]) -> None:
    assert entrypoint_words(entrypoint) == words


@pytest.mark.parametrize(
    ("words", "script"),
    [
        ("python3 train.py --config more.py", "train.py"),
        ("python3 -u code/train.py", "code/train.py"),
        ("python3 -m determined.launch.torch_distributed python3 train.py", "train.py"),
        ("python3 -m determined.launch.deepspeed -- train.py", "train.py"),
        ("torchrun --nproc_per_node 2 train.py", None),
        ("python3 -m package.train", None),
        ("sh run.sh", None),
    ],
)
def test_the_script_of_a_command_is_found_where_it_is_plain_to_see(words: str, script: str | None) -> None:
    assert script_of(words.split()) == script


def test_a_command_of_a_script_with_train_and_evaluate_is_told_what_to_write(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "train.py").write_text("tf.estimator.train_and_evaluate(a, b, c)\n")
    (tmp_path / "const.yaml").write_text("entrypoint: python3 train.py\nresources: {native_parallel: true}\n")
    with pytest.raises(UnsupportedFeatureError, match="a command has all slots of its machine"):
        create_from_directory(tmp_path / "const.yaml", tmp_path)
    assert "a command has no metrics of that. For those, write  entrypoint: train.py" in capsys.readouterr().out


@pytest.mark.parametrize("command", [("experiment", "create"), ("preview-search",)])
def test_deep_yaml_is_a_sentence_in_every_command(command: tuple[str, ...], tmp_path: Path) -> None:
    path = tmp_path / "deep.yaml"
    path.write_text(f"a: {'[' * 3000}{']' * 3000}\n")
    ran = CliRunner().invoke(cli, [*command, str(path)])
    assert isinstance(ran.exception, ArgumentError | ConfigurationError)
    assert "is nested too deeply to be read" in str(ran.exception)
    (tmp_path / "const.yaml").write_text("name: x\n")
    if command == ("experiment", "create"):
        changed = ["--config", f"a={'[' * 3000}{']' * 3000}"]
        ran = CliRunner().invoke(cli, [*command, str(tmp_path / "const.yaml"), str(tmp_path), *changed])
        assert "is nested too deeply to be read" in str(ran.exception)
