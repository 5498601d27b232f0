"""Files of bundles and checkpoints, damaged at every place that is drawn: refused before use, with the file's name."""

from __future__ import annotations

import hashlib
import random
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_checkpoints import FILES, manifest, write

from det_native import PROTOCOL
from det_native.errors import BundleCorruptError, CheckpointCorruptError
from det_native.schema.manifests import BundleManifest, FileEntry, Interpreter, Program
from det_native.storage.blobs import BlobStore
from det_native.storage.checkpoints import CheckpointStorage
from det_native.storage.unpack import unpack_bundle

# One that is compressed in one block, one that is not, one in several blocks, and one without content.
CONTENTS = {
    "text.py": b"x = 1\n" * 2_000,
    "noise.bin": random.Random(3).randbytes(5_000),
    "long.bin": random.Random(4).randbytes(1_200_000),
    "empty": b"",
}


@contextmanager
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as made:
        yield Path(made)


def damage(path: Path, data: st.DataObject) -> None:
    """Flip a bit of a file, or cut it short; the ends, where headers are, are drawn as often as all the rest."""
    content = bytearray(path.read_bytes())
    places = st.integers(0, len(content) - 1)
    ends = st.sampled_from([*range(min(64, len(content))), *range(max(len(content) - 64, 0), len(content))])
    offset = data.draw(places | ends, label="offset")
    if data.draw(st.booleans(), label="cut short"):
        del content[offset:]
    else:
        content[offset] ^= 1 << data.draw(st.integers(0, 7), label="bit")
    path.write_bytes(content)


@given(st.data(), st.sampled_from(sorted(CONTENTS)))
def test_a_bundle_with_a_damaged_blob_is_not_unpacked_until_the_blob_was_sent_again(
    data: st.DataObject, name: str
) -> None:
    with folder() as place:
        store = BlobStore(str(place / "blobs"))
        files = []
        for path, content in CONTENTS.items():
            sha256 = hashlib.sha256(content).hexdigest()
            store.put(sha256, content)
            files.append(FileEntry(path=path, sha256=sha256, size=len(content)))
        bundle = BundleManifest(
            protocol=PROTOCOL,
            interpreter=Interpreter(python="3.11.7", executable=""),
            program=Program(kind="script", framework="torch", command=("text.py",)),
            files=tuple(files),
        )
        sha256 = hashlib.sha256(CONTENTS[name]).hexdigest()
        [blob] = (place / "blobs").rglob(sha256 + "*")
        damage(blob, data)
        refusal = ""
        try:
            unpack_bundle(bundle, store, place / "before")
        except BundleCorruptError as error:
            refusal = str(error)
        if refusal:
            assert name in refusal
            assert not list((place / "before").rglob(name)), "what is damaged is not even there under its name"
        else:  # the compressed form has bits that mean nothing
            assert (place / "before" / name).read_bytes() == CONTENTS[name]
        store.put(sha256, CONTENTS[name])
        unpack_bundle(bundle, store, place / "after")
        assert {path: (place / "after" / path).read_bytes() for path in CONTENTS} == CONTENTS


@given(st.data(), st.sampled_from([*sorted(name for name, content in FILES.items() if content), "manifest.json"]))
def test_a_damaged_checkpoint_is_refused_by_the_name_of_the_file(data: st.DataObject, name: str) -> None:
    with folder() as place:
        storage = CheckpointStorage(str(place / "store"))
        _, saved = storage.publish(write(storage.workspace()), manifest())
        damage(place / "store" / saved.uuid / name, data)
        with pytest.raises(CheckpointCorruptError, match=name.rpartition("/")[2]) as raised:
            storage.fetch(saved.uuid, place / "copy", saved.sha256)
        assert saved.uuid in str(raised.value)
        assert not (place / "copy").exists() or not list((place / "copy").iterdir())
        with pytest.raises(CheckpointCorruptError, match=name.rpartition("/")[2]):
            storage.verify(saved)
