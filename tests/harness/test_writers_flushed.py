"""What writers of the program hold back is in their files when the training has ended, though nothing closes them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
from det_harness.trial.written_files import WrittenFiles

from det_native.schema.outputs import WrittenFile
from det_native.storage.blobs import BlobStore


class Trainer:
    """The user's, with a writer; its own ``flush`` is not what a library means by it."""

    def __init__(self, writer: Any) -> None:
        self.writer = writer
        self.flushed = False

    def flush(self) -> None:
        self.flushed = True

    def close(self) -> None:
        self.flushed = True


Trainer.__module__ = "__main__"


def test_writers_write_out_what_they_hold(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    blobs, reported = BlobStore(str(tmp_path / "blobs")), dict[str, WrittenFile]()
    files = WrittenFiles(
        tmp_path,
        rank=0,
        ranks=1,
        blobs=lambda: blobs,
        report=lambda written, removed: reported.update({file.path: file for file in written}),
        batches=lambda: 3,
    )
    plain, inner = (h5py.File(tmp_path / "work" / name, "w") for name in ("a.h5", "b.h5"))
    closed = h5py.File(tmp_path / "closed.h5", "w")
    closed.close()
    trainer = Trainer(inner)
    files.namespace = {"plain": plain, "trainer": trainer, "closed": closed, "h5py": h5py, "File": h5py.File}
    files.begin()
    plain["x"], inner["y"] = [1, 2, 3], [4]
    files.end()
    assert set(reported) == {"a.h5", "b.h5"}
    for name, key, values in (("a.h5", "x", [1, 2, 3]), ("b.h5", "y", [4])):
        sha256 = reported[name].sha256
        assert sha256 is not None
        blobs.write_to(sha256, tmp_path / name)
        with h5py.File(tmp_path / name) as kept:
            assert kept[key][:].tolist() == values
    assert not trainer.flushed
    plain.close()
    inner.close()
