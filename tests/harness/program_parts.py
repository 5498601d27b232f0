"""What the tests of programs share: a training call that is not the user's, and a host that takes it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from det_harness.program.made_up import MadeUpValues
from det_harness.program.null_handle import NullHandle
from det_harness.program.runner import ProgramRunner, ProgramStop
from harness_bundles import make_bundle, write_files

from det_native.runtime import hosted
from det_native.schema.environment import TrialEnvironment
from det_native.schema.manifests import CallSite, Cell
from det_native.schema.rest import CaptureRow
from det_native.storage.blobs import BlobStore

TRAIN = "from programs_api import train"


class RecordingHost:
    """Takes the recorded call without training; keeps what it was given."""

    environment = TrialEnvironment(config={}, hparams={})

    def __init__(self, runner: ProgramRunner, *, is_compared: bool = True) -> None:
        self.runner = runner
        self.made_up = MadeUpValues(runner.source, lambda: is_compared)
        self.payload: Any = None
        self.others: list[Any] = []

    def take_call(self, kind: str, payload: Any) -> Any:
        if not self.runner.calls.is_recorded(kind):
            self.others.append(payload)
            return NullHandle(self.runner.calls.last_place, self.made_up)
        self.runner.calls.taken = True
        self.made_up.begin_training()
        self.payload = payload() if callable(payload) else payload
        raise ProgramStop

    def owns_init(self) -> bool:
        return self.runner.calls.is_recorded_init()

    def set_streams_of_init(self) -> None:
        self.runner.calls.at_init()


def run(
    tmp_path: Path,
    cells: Sequence[Cell],
    call: CallSite | None = None,
    init: CallSite | None = None,
    add_rows: Callable[[list[CaptureRow]], object] = lambda rows: None,
    *,
    is_compared: bool = True,
    **contents: Any,
) -> tuple[RecordingHost, ProgramRunner]:
    blobs = BlobStore(str(tmp_path / "blobs"))
    bundle = make_bundle(blobs, cells, call=call, **contents)
    bundle = bundle.model_copy(update={"program": bundle.program.model_copy(update={"init": init})})
    work = tmp_path / "work"
    work.mkdir(exist_ok=True)
    write_files(work, contents.get("files") or {})
    runner = ProgramRunner(bundle, blobs.read, work)
    runner.add_rows = add_rows
    host = RecordingHost(runner, is_compared=is_compared)
    with hosted(host):
        runner.run()
    return host, runner


def install_api(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A training call as det_native's own are: in a module that is not the user's."""
    package = tmp_path / "site-packages"
    write_files(
        package,
        {
            "programs_api.py": (
                "from det_native.runtime import active_host\n"
                "def train(payload=None, kind='create'):\n"
                "    return active_host().take_call(kind, payload)\n"
                "def init():\n"
                "    return active_host().owns_init()\n"
                "class Owned:\n"
                "    def __init__(self):\n"
                "        self.owned = init()\n"
                "    def train(self):\n"
                "        return train(self.owned)\n"
            )
        },
    )
    monkeypatch.syspath_prepend(str(package))
    monkeypatch.delitem(sys.modules, "programs_api", raising=False)
