"""Capture and upload of a 90 MB folder, first and second time, over a plain copy of the files."""

from __future__ import annotations

import os
import random
import shutil
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from det_native import PROTOCOL
from det_native.capture.bundle import assemble, forget_files
from det_native.capture.model import Bundle, Capture
from det_native.client.connect import connect
from det_native.client.session import Session
from det_native.client.upload import upload_bundle
from det_native.schema.manifests import Program

MEGABYTE = 1_000_000
SETTLED_SECONDS = 3.0
_WORDS = [
    "def",
    "return",
    "import",
    "for",
    "in",
    "range",
    "self",
    "model",
    "loss",
    "batch",
    "epoch",
    "layer",
    "value",
    "tensor",
    "train",
    "data",
    "config",
]


def _write_folder(folder: Path) -> None:
    """372 files, 90 MB: 18 MB of source text, 36 MB incompressible, 36 MB of numeric text."""
    generator, words = np.random.default_rng(0), random.Random(0)
    for index in range(300):
        path = folder / f"package{index % 12}" / f"module{index}.py"
        path.parent.mkdir(exist_ok=True)
        lines = []
        while sum(map(len, lines)) < 60_000:
            lines.append(" ".join(words.choice(_WORDS) + str(words.randrange(50)) for _ in range(8)) + "\n")
        path.write_text("".join(lines))
    for index in range(36):
        (folder / f"weights{index}.bin").write_bytes(generator.bytes(MEGABYTE))
    for index in range(36):
        numbers = generator.normal(size=100_000).round(6)
        (folder / f"table{index}.csv").write_text("\n".join(f"{number:9.6f}" for number in numbers)[:MEGABYTE])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("project")
    _write_folder(folder)
    return folder


@pytest.fixture(scope="module")
def session(master_home: Path) -> Session:
    return connect()


def _capture(folder: Path) -> Bundle:
    capture = Capture(program=Program(kind="script", framework="torch", command=("module.py",)))
    return assemble(capture, context_dir=folder, protocol=PROTOCOL)


def test_first_time(paired: Any, folder: Path, session: Session, master_home: Path, tmp_path: Path) -> None:
    def forget() -> None:
        shutil.rmtree(master_home / "blobs", ignore_errors=True)
        forget_files()
        # A changed byte makes a new bundle, as after an edit; all blobs are gone from the master.
        (folder / "module.py").write_text(f"# {os.urandom(8).hex()}\n")

    copies = iter(range(1000))
    paired(
        "90 MB bundle, first time: capture and upload, over cp -r",
        lambda: upload_bundle(session, _capture(folder)),
        lambda: shutil.copytree(folder, tmp_path / f"copy{next(copies)}"),
        goal=3.5,
        before=forget,
    )


def _look_at(folder: Path) -> int:
    """Ask for size and time of every file: what none can leave out who is to know that nothing has changed."""
    pending, size = [str(folder)], 0
    while pending:
        with os.scandir(pending.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    pending.append(entry.path)
                else:
                    size += entry.stat().st_size
    return size


def test_unchanged(paired: Any, folder: Path, session: Session) -> None:
    # A file that was written just now may change once more within the same tick of the file system's clock, so it is
    # read each time. People submit again later than that.
    time.sleep(SETTLED_SECONDS)
    upload_bundle(session, _capture(folder))
    paired(
        "90 MB bundle of 372 files, unchanged re-submit, over a bare stat of each",
        lambda: upload_bundle(session, _capture(folder)),
        lambda: _look_at(folder),
        goal=2.2,
        rounds=31,
    )
