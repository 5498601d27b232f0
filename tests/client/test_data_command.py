"""``det data put``: what is wrong with a path is told before a master is started."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from det_native.client.command import cli
from det_native.errors import ArgumentError, MasterUnreachableError
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


def test_what_looks_like_a_secret_is_named_before_it_is_sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DET_HOME", str(tmp_path / "home"))
    folder = tmp_path / "photos"
    (folder / "keys").mkdir(parents=True)
    for name in ("a.png", ".env", "keys/id_rsa", ".env.example"):
        (folder / name).write_text("x")

    def put(*options: str) -> Result:
        command = ["-m", "http://127.0.0.1:9", "data", "put", str(folder), *options]
        return CliRunner().invoke(cli, command, env={"DET_TOKEN": "x"})

    refused = put()
    assert isinstance(refused.exception, ArgumentError), "nobody can be asked here"
    assert str(refused.exception).startswith(".env, keys/id_rsa: the name is that of a secret.")
    assert f"Nothing was sent, for nobody can be asked without a terminal: move it out of {folder} " in str(
        refused.exception
    )
    assert "--yes sends it all the same" in str(refused.exception)
    sent = put("-y")
    assert isinstance(sent.exception, MasterUnreachableError)
    assert "Warning: .env, keys/id_rsa: the name is that of a secret." in sent.stderr
    assert "det data remove photos" in sent.stderr
    (folder / ".env").unlink()
    (folder / "keys/id_rsa").unlink()
    sent = put()
    assert isinstance(sent.exception, MasterUnreachableError)
    assert "Warning" not in sent.stderr
