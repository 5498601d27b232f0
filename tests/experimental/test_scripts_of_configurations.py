"""A configuration whose entrypoint is a script: what is wrong with it is said before anything is started."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from det_native.client.command import cli
from det_native.errors import ArgumentError, ConfigurationError, UnsupportedFeatureError
from det_native.experimental.directories import create_from_directory


def test_a_script_on_two_slots_is_told_what_has_two(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import torch\n")
    (tmp_path / "const.yaml").write_text("entrypoint: python3 train.py\nresources: {slots_per_trial: 2}\n")
    with pytest.raises(UnsupportedFeatureError) as told:
        create_from_directory(tmp_path / "const.yaml", tmp_path)
    text = str(told.value)
    assert text.startswith("resources.slots_per_trial: 2, and entrypoint names the script train.py, which has 1 slot")
    assert "Where it calls tf.estimator.train_and_evaluate(), distributed.strategy: tf_config" in text
    assert "call init() or create() of det_native.experimental in it" in text


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
