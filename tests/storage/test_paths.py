"""No path leaves its folder, whatever its text says and whatever links lie on the way."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from det_native.storage.paths import UnsafePathError, check_relative, check_sha256, check_uuid, safe_join

TRICKS = [
    "",
    ".",
    "..",
    "../secret",
    "../../etc/passwd",
    "a/../../secret",
    "a/..",
    "a/./b",
    "./a",
    "a//b",
    "a/",
    "/etc/passwd",
    "//server/share",
    "C:/Windows/system32",
    "c:secret",
    "..\\secret",
    "a\\..\\..\\secret",
    "\\\\server\\share",
    "a\0.txt",
    "\0",
    "x" * 256,
    "/".join(["d"] * 3000),
    "bad\udcff.txt",
]
HARMLESS = ["a", "a/b/c.py", "..a", "a..", "...", "%2e%2e/x", "~/x", "a b/ü.csv", "-rf", "file:x", "$HOME"]


@pytest.mark.parametrize("trick", TRICKS)
def test_known_tricks_are_refused(trick: str, tmp_path: Path) -> None:
    with pytest.raises(UnsafePathError):
        safe_join(tmp_path, trick)


@pytest.mark.parametrize("name", HARMLESS)
def test_plain_names_are_taken_literally(name: str, tmp_path: Path) -> None:
    assert safe_join(tmp_path, name) == tmp_path.joinpath(*name.split("/"))


PIECES = st.lists(
    st.one_of(st.sampled_from(["..", ".", "/", "\\", "\0", "C:", "%2e", "a", "~", " ", "link"]), st.text(max_size=3)),
    max_size=8,
)


@given(PIECES)
def test_whatever_is_accepted_stays_inside(pieces: list[str]) -> None:
    relative = "/".join(pieces) if len(pieces) % 2 else "".join(pieces)
    try:
        parts = check_relative(relative)
    except UnsafePathError:
        return
    root = "/folder/of/it"
    joined = os.path.normpath(os.path.join(root, *parts))
    assert joined == f"{root}/{relative}"
    assert joined.startswith(root + "/")


def test_links_that_lead_out_are_refused(tmp_path: Path) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside"
    (root / "inner").mkdir(parents=True)
    outside.mkdir()
    (root / "out").symlink_to(outside)
    (root / "passwd").symlink_to("/etc/passwd")
    (root / "inner" / "up").symlink_to("../..")
    (root / "self").symlink_to(".")
    (root / "alias").symlink_to("inner")
    (tmp_path / "root-neighbour").mkdir()
    (root / "neighbour").symlink_to("../root-neighbour")
    for trick in ("out/file", "out", "passwd", "inner/up/outside/file", "inner/up", "self", "neighbour/file"):
        with pytest.raises(UnsafePathError):
            safe_join(root, trick)
    assert safe_join(root, "alias/file") == root / "alias" / "file"


def test_a_root_behind_a_link_is_a_root(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    assert safe_join(tmp_path / "link", "file") == tmp_path / "link" / "file"


def test_a_ring_of_links_is_refused_or_harmless(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    joined = safe_join(tmp_path, "a/file")
    with pytest.raises(OSError):
        joined.open()


@pytest.mark.parametrize("text", ["", "..", "A" * 64, "0" * 63, "0" * 65, "g" * 64, "0" * 63 + "\n", "../" + "0" * 61])
def test_only_hashes_are_hashes(text: str) -> None:
    with pytest.raises(UnsafePathError):
        check_sha256(text)


@pytest.mark.parametrize("text", ["", "..", "0" * 36, "00000000-0000-0000-0000-00000000000\n", ".incoming"])
def test_only_uuids_are_uuids(text: str) -> None:
    with pytest.raises(UnsafePathError):
        check_uuid(text)
