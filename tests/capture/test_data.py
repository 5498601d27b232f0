"""Which strings of a program are paths of files to send."""

from __future__ import annotations

from pathlib import Path

import pytest

from det_native.capture.data import collect_data


def sent(folder: Path, source: str) -> list[str]:
    (folder / "here.txt").write_text("1")
    (folder / "in").mkdir()
    (folder / "in" / "x.txt").write_text("2")
    return sorted(file.target for file in collect_data([(source, "cell [1]")], folder, folder, None).files)


@pytest.mark.parametrize(
    "source",
    [
        "open('here.txt', 'w')",
        "open('here.txt', mode='ab')",
        "open(file='here.txt', mode='x')",
        "with open(os.path.join('in', 'x.txt'), 'w') as log:\n    pass",
        "gzip.open('here.txt', 'wt')",
        "Path('here.txt').open('w')",
        "(Path('in') / 'x.txt').open(mode='a')",
        "Path('here.txt').write_text('done')",
        "table.to_csv('here.txt')",
        "table.to_csv(path_or_buf='here.txt')",
        "plt.savefig('here.txt', dpi=100)",
        "model.save('here.txt')",
        "torch.save(model.state_dict(), 'here.txt')",
    ],
)
def test_files_that_are_written_are_not_sent(source: str, tmp_path: Path) -> None:
    assert sent(tmp_path, source) == []


@pytest.mark.parametrize(
    ("source", "files"),
    [
        ("open('here.txt')", ["here.txt"]),
        ("open('here.txt', 'rb')", ["here.txt"]),
        ("Path('here.txt').open()", ["here.txt"]),
        ("Path('here.txt').read_text()", ["here.txt"]),
        ("open('here.txt', 'w')\nopen('here.txt')", ["here.txt"]),
        ("name = 'here.txt'\nopen(name)", ["here.txt"]),
        ("numpy.savetxt('here.txt', numpy.loadtxt('in/x.txt'))", ["in/x.txt"]),
        ("clean(open('in/x.txt')).to_csv('here.txt')", ["in/x.txt"]),
    ],
)
def test_files_that_are_read_are_sent(source: str, files: list[str], tmp_path: Path) -> None:
    assert sent(tmp_path, source) == files


def test_a_file_of_variables_that_the_code_reads_is_not_sent_unasked(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("KEY=1")
    (tmp_path / ".env.example").write_text("KEY=")
    found = collect_data([("load_dotenv('.env'); open('.env.example')", "cell [1]")], tmp_path, tmp_path, None)
    assert [file.target for file in found.files] == [".env.example"]
    (row,) = found.rows
    assert (row.what, row.cell, row.status) == (".env", "cell [1]", "not sent")
    assert "environment.environment_variables" in row.note


@pytest.mark.parametrize("named", ["home", "home/token", "all", "all/home/det.db"])
def test_the_files_of_a_master_never_travel(named: str, tmp_path: Path) -> None:
    for home in (tmp_path / "home", tmp_path / "all" / "home"):
        (home / "runs" / "1").mkdir(parents=True)
        for name in ("token", "det.db", "runs/1/output.log"):
            (home / name).write_text("secret")
    (tmp_path / "all" / "beside.txt").write_text("1")
    found = collect_data([(f"read({named!r})", "cell [1]")], tmp_path, tmp_path, None)
    assert [file.target for file in found.files] == (["all/beside.txt"] if named == "all" else [])
    (row,) = found.rows
    assert (row.status, row.cell) == ("not sent", "cell [1]")
    assert "token" in row.note


def test_cells_are_called_by_their_titles(tmp_path: Path) -> None:
    (tmp_path / "numbers.csv").write_text("1")
    (tmp_path / "words.txt").write_text("one")
    source = f"read({str(tmp_path / 'numbers.csv')!r})"
    sources = [(source, "[1]"), ("read('words.txt')", "helper.py")]
    found = collect_data(sources, tmp_path, tmp_path, None, {"[1]": "Code cell 1"})
    (warning,) = found.warnings
    assert warning.startswith("Code cell 1 names '/")
    assert [(file.cell, file.why.partition(" as ")[0]) for file in found.files] == [
        ("[1]", "named in code cell 1"),
        ("helper.py", "named in helper.py"),
    ]
