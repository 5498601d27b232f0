"""Which files of a context directory travel, and what is said about the others."""

from __future__ import annotations

import os
import socket
import tempfile
from pathlib import Path

import pytest

from det_native.capture.files import check_size, scan_tree
from det_native.errors import ArgumentError, BundleTooLargeError, CaptureError


def make(root: Path, *names: str, content: bytes = b"x") -> None:
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def targets(root: Path) -> list[str]:
    return [file.target for file in scan_tree(root).files]


def check_limit(root: Path, limit: int) -> None:
    check_size([(file.target, file.stat.size) for file in scan_tree(root).files], limit, root)


def notes(root: Path) -> dict[str, str]:
    return {row.what: row.note for row in scan_tree(root).rows}


def test_files_come_by_target_with_forward_slashes(tmp_path: Path) -> None:
    make(tmp_path, "train.py", "data/b.csv", "data/a.csv", ".hidden", "deep/er/x")
    found = scan_tree(tmp_path).files
    assert [file.target for file in found] == [".hidden", "data/a.csv", "data/b.csv", "deep/er/x", "train.py"]
    assert [file.path for file in found] == [tmp_path / file.target for file in found]


def test_what_nobody_means_to_send_is_left_out(tmp_path: Path) -> None:
    make(
        tmp_path, ".git/config", "sub/.git/HEAD", ".ipynb_checkpoints/n.ipynb", "__pycache__/m.pyc", "pkg/__pycache__/x"
    )
    make(tmp_path, "old.pyc", "node_modules/a/index.js", ".mypy_cache/x", ".DS_Store", "x.egg-info/PKG-INFO", ".venv/x")
    make(tmp_path, "my environment/pyvenv.cfg", "my environment/bin/python", "conda/conda-meta/history", "conda/bin/x")
    make(tmp_path, "tagged/CACHEDIR.TAG", "tagged/blob", "keep.py", "git/notes", "venv/plain_folder.py")
    assert targets(tmp_path) == ["git/notes", "keep.py", "venv/plain_folder.py"]
    (row,) = scan_tree(tmp_path).rows
    assert row.status == "not sent"
    assert ".git/" in row.what


def test_detignore_adds_takes_back_and_stays_here(tmp_path: Path) -> None:
    make(tmp_path, "a.csv", "keep.csv", "data/b.csv", "runs/1/log", "sub/runs/x", "build/out", "src/build/x")
    make(tmp_path, "node_modules/m.js", "env/pyvenv.cfg", "env/x.py", "lib.pyc", ".git/config")
    (tmp_path / ".detignore").write_text(
        "# comment\n*.csv\n!keep.csv\nruns/\n/build\n!node_modules/\n!env/\n!lib.pyc\n\n"
    )
    expected = ["env/pyvenv.cfg", "env/x.py", "keep.csv", "lib.pyc", "node_modules/m.js", "src/build/x"]
    assert targets(tmp_path) == expected
    (tmp_path / ".detignore").write_text("*\n!*.py\n")
    make(tmp_path, "train.py")
    assert targets(tmp_path) == ["train.py"]


def test_files_of_variables_are_left_out_and_the_report_says_how_to_pass_them(tmp_path: Path) -> None:
    make(
        tmp_path,
        ".env",
        ".env.local",
        "sub/.env.production",
        ".env.example",
        ".env.sample",
        "train.py",
        "environment.py",
    )
    assert targets(tmp_path) == [".env.example", ".env.sample", "environment.py", "train.py"]
    rows = {row.what: row for row in scan_tree(tmp_path).rows}
    assert set(rows) == {".env", ".env.local", "sub/.env.production"}
    assert {row.status for row in rows.values()} == {"not sent"}
    assert "environment.environment_variables" in rows[".env"].note
    assert "include=['sub/.env.production']" in rows["sub/.env.production"].note


def test_detignore_takes_a_file_of_variables_in(tmp_path: Path) -> None:
    make(tmp_path, ".env", ".env.local", "train.py")
    (tmp_path / ".detignore").write_text("!.env\n")
    assert targets(tmp_path) == [".env", "train.py"]
    assert list(notes(tmp_path)) == [".env.local"]
    (tmp_path / ".detignore").write_text(".env*\n")
    assert targets(tmp_path) == ["train.py"]


def test_only_the_detignore_at_the_root_counts(tmp_path: Path) -> None:
    make(tmp_path, "sub/.detignore", "sub/x", content=b"*\n")
    assert targets(tmp_path) == ["sub/.detignore", "sub/x"]


def test_a_wrong_line_is_named(tmp_path: Path) -> None:
    (tmp_path / ".detignore").write_text("*.csv\n!\n")
    with pytest.raises(CaptureError, match="line 2"):
        scan_tree(tmp_path)


def test_links_inside_are_followed_as_content(tmp_path: Path) -> None:
    make(tmp_path, "data/real.csv", "shared/tools/t.py")
    (tmp_path / "alias.csv").symlink_to("data/real.csv")
    (tmp_path / "tools").symlink_to("shared/tools")
    assert targets(tmp_path) == ["alias.csv", "data/real.csv", "shared/tools/t.py", "tools/t.py"]


def test_links_out_broken_ones_and_loops_are_reported(tmp_path: Path) -> None:
    root = tmp_path / "root"
    make(root, "a/x", "ok.py")
    make(tmp_path, "outside/secret", "root-neighbour/secret")
    (root / "out").symlink_to("../outside")
    (root / "out.txt").symlink_to(tmp_path / "outside" / "secret")
    (root / "near").symlink_to("../root-neighbour")
    (root / "broken").symlink_to("nowhere")
    (root / "ring").symlink_to("ring")
    (root / "a" / "up").symlink_to("..")
    (root / "a" / "self").symlink_to(".")
    assert targets(root) == ["a/x", "ok.py"]
    found = notes(root)
    assert set(found) == {"out", "out.txt", "near", "broken", "ring", "a/up", "a/self"}
    assert "outside of the context directory" in found["out"]
    assert "outside" in found["near"]
    assert "lies in" in found["a/up"]


def test_two_folders_that_link_to_each_other_end(tmp_path: Path) -> None:
    make(tmp_path, "a/x", "b/y")
    (tmp_path / "a" / "b").symlink_to("../b")
    (tmp_path / "b" / "a").symlink_to("../a")
    assert targets(tmp_path) == ["a/b/y", "a/x", "b/a/x", "b/y"]


def test_what_is_no_plain_file_is_reported_and_never_opened(tmp_path: Path) -> None:
    make(tmp_path, "x")
    os.mkfifo(tmp_path / "pipe")
    with socket.socket(socket.AF_UNIX) as listener:
        previous = os.getcwd()
        os.chdir(tmp_path)
        try:
            listener.bind("sock")
        finally:
            os.chdir(previous)
        assert targets(tmp_path) == ["x"]
        assert set(notes(tmp_path)) == {"pipe", "sock"}


def test_names_that_cannot_travel_are_reported(tmp_path: Path) -> None:
    make(tmp_path, "good", "back\\slash")
    with open(os.fsencode(tmp_path) + b"/bad\xff", "wb") as stream:
        stream.write(b"x")
    assert targets(tmp_path) == ["good"]
    assert len(notes(tmp_path)) == 2


@pytest.mark.skipif(os.geteuid() != 0, reason="takes another user's place for a moment")
def test_unreadable_files_and_folders_are_reported() -> None:
    with tempfile.TemporaryDirectory(dir="/var/tmp") as name:
        root = Path(name)
        root.chmod(0o755)
        make(root, "open.py", "closed.py", "locked/x")
        (root / "closed.py").chmod(0)
        (root / "locked").chmod(0)
        os.seteuid(65534)
        try:
            assert targets(root) == ["open.py"]
            assert set(notes(root)) == {"closed.py", "locked/"}
        finally:
            os.seteuid(0)


def test_over_the_limit_the_ten_largest_are_listed_with_a_hint(tmp_path: Path) -> None:
    for index in range(15):
        make(tmp_path, f"f{index:02}.bin", content=b"x" * (100_000 + index * 100_000))
    with pytest.raises(BundleTooLargeError) as caught:
        check_limit(tmp_path, 5_000_000)
    names = [problem.where for problem in caught.value.problems]
    assert names == [f"f{index:02}.bin" for index in range(14, 4, -1)]
    assert ".detignore" in str(caught.value)
    assert "1.50 MB" in caught.value.problems[0].what
    assert "have 12.0 MB, 7.00 MB over the limit of 5.00 MB" in str(caught.value)
    total = sum(100_000 + index * 100_000 for index in range(15))
    check_limit(tmp_path, total)
    with pytest.raises(BundleTooLargeError):
        check_limit(tmp_path, total - 1)


def test_what_is_no_directory_is_refused(tmp_path: Path) -> None:
    make(tmp_path, "file")
    for wrong in (tmp_path / "file", tmp_path / "none"):
        with pytest.raises(ArgumentError, match="context_dir"):
            scan_tree(wrong)


def test_an_unchanged_directory_gives_the_same_scan_and_any_change_another(tmp_path: Path) -> None:
    make(tmp_path, "a", "d/b", "d/c")
    scan = scan_tree(tmp_path)
    assert scan_tree(tmp_path) is scan
    (tmp_path / "a").write_bytes(b"longer")
    changed = scan_tree(tmp_path)
    assert changed is not scan
    assert [file.stat.size for file in changed.files] == [6, 1, 1]
    (tmp_path / "d" / "b").unlink()
    assert [file.target for file in scan_tree(tmp_path).files] == ["a", "d/c"]
    make(tmp_path, "d/b2")
    assert [file.target for file in scan_tree(tmp_path).files] == ["a", "d/b2", "d/c"]
    (tmp_path / ".detignore").write_text("d/\n")
    assert [file.target for file in scan_tree(tmp_path).files] == ["a"]
    os.rename(tmp_path / "a", tmp_path / "z")
    assert [file.target for file in scan_tree(tmp_path).files] == ["z"]


def test_the_files_of_a_master_never_travel_with_the_directory(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    for name in ("token", "det.db", "master.log"):
        (tmp_path / "home" / name).write_text("secret")
    (tmp_path / "token").write_text("a word of a vocabulary")
    assert targets(tmp_path) == ["token"]


@pytest.mark.parametrize("name", ["home", "."])
def test_a_home_in_the_directory_never_travels_even_before_a_master_ran_there(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a kernel writes there while it captures: hashes of files, what it trains."""
    monkeypatch.setenv("DET_HOME", str(tmp_path / name))
    for path in ("cache/file-hashes.sqlite", "cache/file-hashes.sqlite-wal", "runs/1/kernel.json", "start.lock"):
        make(tmp_path / name, path)
    make(tmp_path, "train.py")
    make(tmp_path, "other/cache/file-hashes.sqlite")
    (tmp_path / ".detignore").write_text("!home/\n!*.sqlite\n")
    scan = scan_tree(tmp_path)
    assert [file.target for file in scan.files] == ["train.py"]
    homes = {row.what for row in scan.rows if "never travel" in row.note}
    assert homes == {"./" if name == "." else "home/", "other/"}


def test_a_folder_of_a_thousand_files_that_are_not_sent_is_one_row(tmp_path: Path) -> None:
    outside, inside = tmp_path / "outside", tmp_path / "project"
    make(outside, "image")
    make(inside, "train.py")
    (inside / "data").mkdir()
    for number in range(1000):
        (inside / "data" / f"{number}.png").symlink_to(outside / "image")
    (row,) = scan_tree(inside).rows
    assert (row.what, row.how) == ("data/", "1000 files")
    assert row.note == "a link to outside of the context directory, such as data/0.png"
