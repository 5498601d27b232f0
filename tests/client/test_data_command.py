"""``det data put``: what is wrong with a path is told before a master is started."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from det_native.client.command import cli
from det_native.schema.home import Home


@pytest.mark.parametrize(("name", "says"), [("nowhere", "There is no "), ("empty", "There is no file in ")])
def test_a_path_without_files_starts_no_master(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, says: str
) -> None:
    monkeypatch.setenv("DET_HOME", str(tmp_path / "home"))
    (tmp_path / "empty").mkdir()
    ran = CliRunner().invoke(cli, ["data", "put", str(tmp_path / name)])
    assert ran.exit_code != 0
    assert says in ran.output + str(ran.exception)
    assert not Home(tmp_path / "home").log.exists()
