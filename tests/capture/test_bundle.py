"""From what capture found to a manifest, contents and a report."""

from __future__ import annotations

import hashlib
import os
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from det_native.capture.bundle import assemble, forget_files
from det_native.capture.hash_cache import HashCache
from det_native.capture.model import (
    INCLUDED,
    Bundle,
    BundleRow,
    Capture,
    CapturedValue,
    OutsidePath,
    SourceFile,
)
from det_native.capture.packages import current_interpreter
from det_native.errors import BundleTooLargeError, CaptureError
from det_native.schema.manifests import Cell, Program
from det_native.schema.rest import CaptureRow, ExperimentCreate


def sha(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def make(root: Path, **files: bytes) -> None:
    for name, content in files.items():
        path = root / name.replace("__", "/").replace("_dot_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def capture(*files: SourceFile, values: tuple[CapturedValue, ...] = ()) -> Capture:
    cells = (Cell(number=3, cell_id="a", source="import x"), Cell(number=7, cell_id="b", source="fit()"))
    program = Program(kind="cells", framework="keras", cells=cells)
    return Capture(program=program, files=list(files), values=list(values), requirements=["einops", "einops"])


def value(name: str, content: bytes) -> CapturedValue:
    return CapturedValue(name, content, 1, "array of 3 floats", "[2]")


def build(found: Capture, context_dir: Path | None, **options: object) -> Bundle:
    return assemble(found, context_dir=context_dir, protocol=1, **options)  # type: ignore[arg-type]


def test_everything_is_in_the_manifest_and_every_blob_is_to_be_had(tmp_path: Path) -> None:
    root = tmp_path / "project"
    make(root, train_dot_py=b"print()", pkg__a_dot_py=b"a", pkg__same_dot_py=b"a")
    make(tmp_path, data_dot_csv=b"1,2")
    extra = SourceFile(tmp_path / "data.csv", "inputs/data.csv", "read by cell [3]", "[3]")
    bundle = build(capture(extra, values=(value("x", b"numbers"),)), root)
    manifest = bundle.manifest
    assert [(file.path, file.sha256, file.size) for file in manifest.files] == [
        ("inputs/data.csv", sha(b"1,2"), 3),
        ("pkg/a.py", sha(b"a"), 1),
        ("pkg/same.py", sha(b"a"), 1),
        ("train.py", sha(b"print()"), 7),
    ]
    assert [(one.name, one.sha256, one.size, one.before_cell) for one in manifest.values] == [
        ("x", sha(b"numbers"), 7, 1)
    ]
    assert manifest.requirements == ("einops",)
    assert set(bundle.contents) == manifest.hashes()
    for sha256, content in bundle.contents.items():
        assert sha(content if isinstance(content, bytes) else content.read_bytes()) == sha256


def test_the_report_says_what_how_and_how_large(tmp_path: Path) -> None:
    root = tmp_path / "project"
    make(root, train_dot_py=b"print()", pkg__a=b"aa", pkg__sub__b=b"bbb")
    (root / "away").symlink_to("/etc")
    make(tmp_path, data_dot_csv=b"1,2")
    found = capture(SourceFile(tmp_path / "data.csv", "data.csv", "read", "[3]"), values=(value("x", b"numbers"),))
    found.notes.rows.append(CaptureRow(what="/big", how="file", size=9, status="not sent"))
    report = build(found, root).report
    rows = {row.what: (row.how, row.size, row.cell, row.status) for row in report}
    assert rows == {
        "2 cells": ("source", 13, "[3], [7]", "new"),
        "x": ("value", 7, "[2]", "new"),
        "data.csv": ("file", 3, "[3]", "new"),
        "pkg/": ("2 files", 5, "", "new"),
        "train.py": ("file", 7, "", "new"),
        "einops": ("requirement", 0, "", "new"),
        "/big": ("file", 9, "", "not sent"),
        "away": ("file", 0, "", "not sent"),
    }
    assert {row.what: row.hashes for row in report if isinstance(row, BundleRow)}["pkg/"] == {sha(b"aa"), sha(b"bbb")}


def test_the_report_travels_with_an_experiment(tmp_path: Path) -> None:
    make(tmp_path, a=b"x")
    bundle = build(capture(), tmp_path)
    body = ExperimentCreate(protocol=1, config={}, bundle_id=bundle.manifest.id, report=bundle.report)
    sent = ExperimentCreate.model_validate_json(body.model_dump_json())
    assert [row.model_dump() for row in sent.report] == [row.model_dump() for row in bundle.report]


def test_many_loose_files_share_a_row(tmp_path: Path) -> None:
    make(tmp_path, **{f"f{index}": b"x" for index in range(40)})
    assert [row.what for row in build(capture(), tmp_path).report] == ["2 cells", "./", "einops"]


def test_the_same_file_twice_is_sent_once_and_different_ones_are_an_error(tmp_path: Path) -> None:
    root = tmp_path / "project"
    make(root, a_dot_csv=b"1", folder__x=b"2")
    make(tmp_path, b_dot_csv=b"other", c=b"3")
    same = SourceFile(root / "a.csv", "a.csv", "named in cell [3]")
    assert [file.path for file in build(capture(same), root).manifest.files] == ["a.csv", "folder/x"]
    different = SourceFile(tmp_path / "b.csv", "a.csv", "named in cell [3]")
    blocking = SourceFile(tmp_path / "c", "folder", "named in cell [4]")
    escaping = SourceFile(tmp_path / "c", "../c", "named in cell [5]")
    with pytest.raises(CaptureError) as caught:
        build(capture(different, blocking, escaping), root)
    assert [problem.where for problem in caught.value.problems] == ["a.csv", str(tmp_path / "c"), "folder"]


def test_an_explicit_file_travels_even_if_it_is_ignored(tmp_path: Path) -> None:
    make(tmp_path, _dot_detignore=b"*.csv\n", a_dot_csv=b"1", b_dot_csv=b"2")
    named = SourceFile(tmp_path / "a.csv", "a.csv", "named in cell [3]")
    assert [file.path for file in build(capture(named), tmp_path).manifest.files] == ["a.csv"]


def test_the_limit_counts_files_and_values_raw(tmp_path: Path) -> None:
    make(tmp_path, a=b"x" * 1000, b=b"x" * 1000)
    found = capture(values=(value("array", b"y" * 3000),))
    assert build(found, tmp_path, limit=5000).manifest.files
    with pytest.raises(BundleTooLargeError) as caught:
        build(found, tmp_path, limit=4999)
    assert [problem.where for problem in caught.value.problems] == ["value 'array'", "a", "b"]


def test_a_file_that_is_gone_is_named(tmp_path: Path) -> None:
    with pytest.raises(CaptureError, match=r"gone\.csv"):
        build(capture(SourceFile(tmp_path / "gone.csv", "gone.csv", "")), None)


def test_the_id_depends_on_content_and_executability_only(tmp_path: Path) -> None:
    make(tmp_path, a=b"x", run=b"#!")
    (tmp_path / "run").chmod(0o755)
    first = build(capture(), tmp_path).manifest
    assert {file.path: file.mode for file in first.files} == {"a": 0o644, "run": 0o755}
    os.utime(tmp_path / "a", (1, 1))
    (tmp_path / "a").chmod(0o600)
    assert build(capture(), tmp_path).manifest.id == first.id
    (tmp_path / "a").write_bytes(b"y")
    assert build(capture(), tmp_path).manifest.id != first.id


def test_an_unchanged_directory_is_not_read_and_gives_the_same_manifest(tmp_path: Path) -> None:
    root = tmp_path / "project"
    make(root, a=b"x", d__b=b"y")
    cache = HashCache(tmp_path / "hashes.sqlite", clock=lambda: time.time_ns() + 10**10)
    first = build(capture(), root, cache=cache)
    read = cache.files_read
    again = build(capture(), root, cache=cache)
    assert again.manifest is first.manifest
    assert cache.files_read == read
    assert set(again.states) == again.manifest.hashes()
    (root / "d" / "b").write_bytes(b"z")
    assert build(capture(), root, cache=cache).manifest.id != first.manifest.id


def test_forgotten_files_are_read_anew(tmp_path: Path) -> None:
    root = tmp_path / "project"
    make(root, a=b"x")
    first = build(capture(), root).manifest
    forget_files()
    assert build(capture(), root).manifest == first


def test_rows_of_one_bundle_are_not_those_of_the_next(tmp_path: Path) -> None:
    make(tmp_path, a=b"x")
    first, second = build(capture(), tmp_path), build(capture(), tmp_path)
    for row in first.report:
        row.status = "already there"
    assert all(row.status == "new" for row in second.report)


def test_a_script_is_one_row() -> None:
    program = Program(kind="script", framework="torch", command=("train.py", "--lr", "0.1"))
    assert [row.what for row in build(Capture(program=program), None).report] == ["train.py --lr 0.1"]


def test_the_interpreter_is_this_one() -> None:
    found = current_interpreter()
    assert found.executable == sys.executable
    assert found.python == ".".join(map(str, sys.version_info[:3]))
    assert current_interpreter() is found


def test_packages_are_those_that_importlib_finds() -> None:
    from importlib import metadata

    found = current_interpreter().packages
    for name in ("pydantic", "zstandard", "scikit-learn", "typing-extensions"):
        assert found[name] == metadata.version(name)


def test_a_package_installed_meanwhile_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    before = current_interpreter()
    (tmp_path / "Some_New.Package-1.2.3+cpu.dist-info").mkdir()
    after = current_interpreter()
    assert "some-new-package" not in before.packages
    assert after.packages["some-new-package"] == "1.2.3+cpu"
    assert after.fingerprint != before.fingerprint


def test_files_that_look_like_keys_are_named_in_one_warning(tmp_path: Path) -> None:
    root = tmp_path / "project"
    make(root, train_dot_py=b"", certs__server_dot_pem=b"x", id_rsa=b"x", asked_dot_pem=b"x", taken_dot_key=b"x")
    (root / ".detignore").write_text("!taken.key\n")
    make(tmp_path, credentials_dot_json=b"{}")
    asked = SourceFile(root / "asked.pem", "asked.pem", INCLUDED)
    read = SourceFile(tmp_path / "credentials.json", "credentials.json", "named in [3] as 'credentials.json'", "[3]")
    (warning,) = build(capture(asked, read), root).warnings
    assert "credentials.json, certs/server.pem, id_rsa. " in warning
    assert "asked.pem" not in warning
    assert "taken.key" not in warning
    assert build(capture(asked), None).warnings == []


def test_a_file_of_variables_that_was_asked_for_is_not_reported_as_left_out(tmp_path: Path) -> None:
    root = tmp_path / "project"
    make(root, train_dot_py=b"", _dot_env=b"KEY=1")
    (row,) = [row for row in build(capture(), root).report if row.what == ".env"]
    assert row.status == "not sent"
    bundle = build(capture(SourceFile(root / ".env", ".env", INCLUDED)), root)
    (row,) = [row for row in bundle.report if row.what == ".env"]
    assert (row.how, row.status) == ("file", "new")
    assert [file.path for file in bundle.manifest.files] == [".env", "train.py"]


def test_a_folder_of_a_thousand_files_is_one_row_whoever_names_it(tmp_path: Path) -> None:
    root = tmp_path / "project"
    for number in range(1000):
        make(root, **{f"data__{number % 7}__{number}_dot_txt": b"%d" % number})
    named = [
        SourceFile(path, path.relative_to(root).as_posix(), "named in cell [2] as 'data'", "[2]")
        for path in sorted(root.rglob("*.txt"))
    ]
    other = SourceFile(named[0].path, "other.txt", "read by cell [3]", "[3]")
    for bundle in (build(capture(*named, other), None), build(capture(other), root)):
        rows = {row.what: row for row in bundle.report}
        assert rows["data/"].how == "1000 files"
        assert rows["data/"].size == sum(len(str(number)) for number in range(1000))
        assert rows["other.txt"].how == "file"
        assert len([row for row in bundle.report if "txt" in row.what or "data" in row.what]) == 2
        assert isinstance(rows["data/"], BundleRow)
        assert len(rows["data/"].hashes) == 1000


def test_a_file_that_goes_away_while_the_directory_is_read_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(tmp_path, train_dot_py=b"print()", part_dot_tmp=b"half")
    hash_files = HashCache.hash_files

    def later(self: HashCache, files: list[tuple[str, object]]) -> object:
        (tmp_path / "part.tmp").unlink(missing_ok=True)
        return hash_files(self, files)  # type: ignore[arg-type]

    monkeypatch.setattr(HashCache, "hash_files", later)
    assert [entry.path for entry in build(capture(), tmp_path).manifest.files] == ["train.py"]


def test_what_is_too_large_is_refused_before_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(tmp_path, large_dot_bin=b"x" * 1000)
    monkeypatch.setattr(HashCache, "hash_files", lambda *_: pytest.fail("it was read"))
    with pytest.raises(BundleTooLargeError, match=r"large\.bin"):
        build(capture(), tmp_path, limit=999)


class TestStored:
    """What the cluster's store of data has does not travel, once the limit is exceeded."""

    def test_large_files_are_left_there_first(self, tmp_path: Path) -> None:
        large, small = b"l" * (1 << 20), b"s" * 1000
        make(tmp_path, large_dot_bin=large, small_dot_txt=small)
        bundle = build(capture(), tmp_path, limit=1 << 20, stored=store(large, small))
        assert [link.path for link in bundle.manifest.links] == ["large.bin"]
        assert [file.path for file in bundle.manifest.files] == ["small.txt"]

    def test_many_small_ones_are_left_there_where_they_exceed_the_limit(self, tmp_path: Path) -> None:
        images = {f"images__{number}_dot_jpg": f"{number:03}".encode() * 1000 for number in range(20)}
        make(tmp_path, train_dot_py=b"print()", **images)
        with pytest.raises(BundleTooLargeError):
            build(capture(), tmp_path, limit=50_000)
        named = SourceFile(tmp_path / "images/3.jpg", "images/3.jpg", "read by cell [3]", "[3]")
        bundle = build(capture(named), tmp_path, limit=50_000, stored=store(*images.values()))
        assert {link.path: link.sha256 for link in bundle.manifest.links} == {
            f"images/{number}.jpg": sha(f"{number:03}".encode() * 1000) for number in range(20)
        }
        assert [file.path for file in bundle.manifest.files] == ["train.py"]
        [row] = [row for row in bundle.report if row.how == "stored data"]
        assert (row.what, row.size, row.note.split(",")[0]) == ("images/", 60_000, "20 files")

    def test_those_that_it_does_not_have_are_still_refused(self, tmp_path: Path) -> None:
        make(tmp_path, one=b"1" * 600, two=b"2" * 600, three=b"3" * 600)
        with pytest.raises(BundleTooLargeError, match="2 files"):
            build(capture(), tmp_path, limit=1000, stored=store(b"1" * 600))

    def test_a_folder_outside_is_there_with_what_its_links_lead_to(self, tmp_path: Path) -> None:
        make(tmp_path, outside__a=b"one", elsewhere__b=b"three", project__train_dot_py=b"")
        outside = tmp_path / "outside"
        (outside / "link").symlink_to(tmp_path / "elsewhere")
        found = capture()
        found.paths.outside.append(OutsidePath(str(outside), outside, "[3]", "Cell [3], line 1"))
        told = build(found, tmp_path / "project", elsewhere=True, stored=store(b"one"))
        assert not told.manifest.links, "a part of it is not there"
        bundle = build(found, tmp_path / "project", elsewhere=True, stored=store(b"one", b"three"))
        assert [link.path.removeprefix(f".det_outside{outside}/") for link in bundle.manifest.links] == ["a", "link/b"]

    def test_the_store_is_asked_once_for_all_that_lies_outside(self, tmp_path: Path) -> None:
        make(tmp_path, one=b"1", two=b"22", project__train_dot_py=b"")
        found = capture()
        for name in ("one", "two"):
            path = tmp_path / name
            found.paths.outside.append(OutsidePath(str(path), path, "[3]", "Cell [3], line 1"))
        asked: list[list[int]] = []

        def ask(sizes: Sequence[int]) -> dict[int, set[str]]:
            asked.append(list(sizes))
            return store(b"1", b"22")(sizes)

        assert len(build(found, tmp_path / "project", elsewhere=True, stored=ask).manifest.links) == 2
        assert asked == [[1, 2]]


def store(*contents: bytes) -> Callable[[Sequence[int]], dict[int, set[str]]]:
    """Return what tells which contents a store has."""

    def ask(sizes: Sequence[int]) -> dict[int, set[str]]:
        found: dict[int, set[str]] = {}
        for content in contents:
            if len(content) in sizes:
                found.setdefault(len(content), set()).add(sha(content))
        return found

    return ask


def test_what_the_program_makes_is_not_sent_with_its_folder(tmp_path: Path) -> None:
    root = tmp_path / "project"
    make(root, train_dot_py=b"print()", made__a_dot_npy=b"a", made__b_dot_npy=b"bb")
    found = capture()
    found.paths.made = lambda path: 0 if path.parent.name == "made" else None
    bundle = build(found, root)
    assert [file.path for file in bundle.manifest.files] == ["train.py"]
    (row,) = [row for row in bundle.report if row.status == "not sent"]
    assert (row.what, row.size, row.note) == ("2 files", 3, "made by cells that run again")
    found.paths.made = None
    assert len(build(found, root).manifest.files) == 3
