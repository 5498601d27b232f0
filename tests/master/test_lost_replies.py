"""Replies of a master that are lost on the way to a command: what was asked for is done, and done once."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner
from http_proxy import Fault, HttpProxy, http_proxy
from master_parts import Master

from det_native.client.command import cli
from det_native.schema.sockets import url_of

pytestmark = pytest.mark.slow

MODEL_DEF = """
from det_native.pytorch import PyTorchTrial

class Trial(PyTorchTrial):
    def __init__(self, context):
        self.context = context

    def build_training_data_loader(self): ...
    def build_validation_data_loader(self): ...
    def train_batch(self, batch, epoch_idx, batch_idx): ...
    def evaluate_batch(self, batch): ...
"""
CONFIG = """
entrypoint: model_def:Trial
hyperparameters: {global_batch_size: 8}
searcher: {name: single, metric: loss, max_length: {batches: 4}}
"""


class Proxy:
    """A master, and what is between it and commands; the reply to the request numbered `lost` never arrives."""

    def __init__(self, master: Master, between: HttpProxy) -> None:
        self.master = master
        self.passed = between.passed
        self.lost = -1
        between.fault = lambda number, _: Fault.LOST if number == self.lost else Fault.NONE


@pytest.fixture
def proxy(master: Master, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Proxy]:
    """Give a proxy before a master, to which commands speak."""
    folder = Path(tempfile.mkdtemp(dir="/tmp"))  # the path of a socket is short
    monkeypatch.setenv("DET_MASTER", url_of(folder / "proxy.sock"))
    monkeypatch.setenv("DET_TOKEN", master.token)
    monkeypatch.setenv("DET_HOME", str(tmp_path / "client"))
    monkeypatch.chdir(tmp_path)
    port = master.client.base_url.port
    assert port is not None
    with http_proxy(port, folder / "proxy.sock") as between:
        yield Proxy(master, between)
    shutil.rmtree(folder)


def det(*words: str) -> str:
    done = CliRunner().invoke(cli, words)
    assert done.exit_code == 0, done.output
    return done.output


def test_each_reply_of_a_create_may_be_lost(proxy: Proxy, tmp_path: Path) -> None:
    folder = tmp_path / "mnist"
    folder.mkdir()
    (folder / "const.yaml").write_text(CONFIG)

    def create(number: int) -> list[str]:
        (folder / "model_def.py").write_text(f"{MODEL_DEF}# {number}\n")
        proxy.passed.clear()
        det("experiment", "create", "mnist/const.yaml", "mnist")
        return list(proxy.passed)

    asked = create(0)
    assert {path.rpartition("/")[2] for path in asked} >= {"environment", "missing", "blobs", "bundles", "check"}
    assert asked[-1] == "POST /api/v1/experiments"
    for lost in range(len(asked)):
        proxy.lost = lost
        passed = create(lost + 1)
        assert len(passed) > len(asked), f"the reply to {asked[lost]} was lost"
        assert len(proxy.master.get("/experiments")) == lost + 2, "it is made once"


def test_who_stops_a_master_is_told_of_the_trials_that_wait(proxy: Proxy) -> None:
    for _ in range(3):
        proxy.master.create()
    proxy.master.world.wait_for_jobs(2)
    told = det("down")
    assert told.endswith("stops. 2 running trials go on. 1 trial waits until a master runs again: `det up`.\n")


@pytest.mark.long
@pytest.mark.parametrize("verb", ["pause", "resume", "stop", "kill"])
def test_a_lost_reply_to_a_command_is_asked_for_again(proxy: Proxy, verb: str) -> None:
    number = proxy.master.create()["id"]
    proxy.lost = 0
    det("experiment", verb, str(number))
    assert proxy.passed == [f"POST /api/v1/experiments/{number}/{verb}"] * 2
