"""The store of data: pieces in any division, cut anywhere, give the files; each content is there once."""

from __future__ import annotations

import asyncio
import errno
import hashlib
import os
import random
import tempfile
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from det_native.errors import NotFoundError, RequestError, StorageError
from det_native.schema.datasets import DataSetCreate, WantedFile
from det_native.schema.manifests import FileEntry
from det_native.storage.datasets import PIECE, DataStore
from det_native.storage.linked_data import link_files


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def piece(content: bytes, offset: int, length: int, sha256: str | None = None) -> bytes:
    head = PIECE.pack(bytes.fromhex(sha256 or digest(content)), len(content), offset, length)
    return head + content[offset : offset + length]


def receive(store: DataStore, body: bytes, *, block: int = 1000, cut: int | None = None) -> int:
    """Give the store a body in blocks, up to where the connection is cut."""

    async def stream() -> AsyncIterator[bytes]:
        whole = body if cut is None else body[:cut]
        for start in range(0, len(whole), block):
            yield whole[start : start + block]
        if cut is not None:
            raise ConnectionError

    return asyncio.run(store.receive(stream()))


def wanted(*contents: bytes) -> list[WantedFile]:
    return [WantedFile(sha256=digest(content), size=len(content)) for content in contents]


@given(
    st.lists(st.binary(max_size=60), min_size=1, max_size=4, unique=True),
    st.lists(st.integers(1, 200), max_size=6),
    st.integers(1, 50),
)
def test_what_is_cut_anywhere_goes_on_there(contents: list[bytes], cuts: list[int], block: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = DataStore(Path(folder))
        by_hash = {digest(content): content for content in contents}

        def rest() -> bytes:
            return b"".join(
                piece(by_hash[one.sha256], one.offset, len(by_hash[one.sha256]) - one.offset)
                for one in store.missing(wanted(*contents))
            )

        for cut in cuts:
            before = {one.sha256: one.offset for one in store.missing(wanted(*contents))}
            with pytest.raises(ConnectionError):
                receive(store, rest(), block=block, cut=cut)
            after = {one.sha256: one.offset for one in store.missing(wanted(*contents))}
            assert all(after[sha256] >= before[sha256] for sha256 in after)
            if cut == 100:
                store = DataStore(Path(folder))  # the master has been started anew
        receive(store, rest(), block=block)
        assert store.missing(wanted(*contents)) == []
        for content in contents:
            assert store.path_of(digest(content)).read_bytes() == content


def test_what_is_not_what_its_hash_says_is_not_taken(tmp_path: Path) -> None:
    store = DataStore(tmp_path)
    with pytest.raises(RequestError, match="changed while it was sent"):
        receive(store, piece(b"abc", 0, 3, sha256=digest(b"xyz")))
    assert store.missing(wanted(b"xyz"))[0].offset == 0
    with pytest.raises(RequestError, match="0 bytes are here, not 1"):
        receive(store, piece(b"abc", 1, 2))
    with pytest.raises(RequestError, match="ends early"):
        receive(store, piece(b"abc", 0, 3)[:-1])
    with pytest.raises(RequestError, match="after the end"):
        receive(store, PIECE.pack(bytes(32), 3, 2, 2) + b"ab")


@pytest.mark.parametrize("block", [100, 4 << 20], ids=["the last block", "a block in the middle"])
def test_after_a_full_disk_it_goes_on_with_what_the_disk_has_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: int
) -> None:
    store, write, calls = DataStore(tmp_path), os.write, 0
    content = random.Random(0).randbytes(2000 if block == 100 else (6 << 20))
    taken = 700

    def nearly_full(descriptor: int, data: bytes) -> int:
        nonlocal calls
        calls += 1
        if calls == 1:
            return write(descriptor, data[:taken])
        if calls == 2:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write(descriptor, data)

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", nearly_full)
        with pytest.raises(OSError, match="No space left"):
            receive(store, piece(content, 0, len(content)), block=block)
    assert store.missing(wanted(content))[0].offset == taken
    receive(store, piece(content, taken, len(content) - taken))
    assert store.path_of(digest(content)).read_bytes() == content


def test_what_uploads_have_left_goes_after_a_while(tmp_path: Path) -> None:
    store = DataStore(tmp_path)
    named, read, left, partial = b"named", b"read", b"left", b"partial"
    receive(store, b"".join(piece(content, 0, len(content)) for content in (named, read, left)))
    receive(store, piece(partial, 0, 3))
    store.create(
        DataSetCreate(name="one", files=[FileEntry(path="a", sha256=digest(named), size=len(named))]),
    )
    store.drop_left({digest(read)}, time.time() - 3600)
    assert store.path_of(digest(left)).exists(), "an upload may go on"
    assert store.missing(wanted(partial))[0].offset == 3
    store.drop_left({digest(read)}, time.time() + 3600)
    assert [store.path_of(digest(content)).exists() for content in (named, read, left)] == [True, True, False]
    assert store.missing(wanted(partial))[0].offset == 0


def test_sets_share_their_files_and_go_without_each_other(tmp_path: Path) -> None:
    store = DataStore(tmp_path / "data")
    one, two = b"1" * 10, b"2" * 20
    receive(store, piece(one, 0, 10) + piece(two, 0, 20))
    entries = [
        FileEntry(path=name, sha256=digest(content), size=len(content)) for name, content in (("a", one), ("b/c", two))
    ]
    store.create(DataSetCreate(name="both", files=entries))
    store.create(DataSetCreate(name="first", files=entries[:1]))
    assert [(each.name, each.files, each.size) for each in store.sets()] == [("both", 2, 30), ("first", 1, 10)]
    assert [each.sha256 for each in store.find([20, 21])] == [digest(two)]
    work = tmp_path / "work"
    work.mkdir()
    link_files(entries, str(tmp_path / "data"), work)
    assert (work / "b/c").read_bytes() == two
    store.remove("both")
    assert store.path_of(digest(one)).exists()
    assert not store.path_of(digest(two)).exists()
    with pytest.raises(StorageError, match="'b/c' is no longer in the cluster's store"):
        link_files(entries[1:], str(tmp_path / "data"), work)
    with pytest.raises(NotFoundError, match="det data list"):
        store.remove("both")
    with pytest.raises(RequestError, match="not in the store yet, such as 'b/c'"):
        store.create(DataSetCreate(name="again", files=entries))
