"""Which strings of a program are paths of files to send."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from det_native.capture import folders
from det_native.capture.data import DataFiles, collect_data


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
        "name = 'here.txt'\nfor epoch in range(3):\n    torch.save(model.state_dict(), name)",
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
        ("name = 'here.txt'\ntorch.save(1, name)\ntorch.load(name)", ["here.txt"]),
        ("name = 'here.txt'\nif os.path.exists(name):\n    go_on()\ntorch.save(1, name)", ["here.txt"]),
        ("name = 'here.txt'\nkeep = Keeper(name)\ntorch.save(1, name)", ["here.txt"]),
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
    assert found.warnings == []  # the worker has another path in its place
    assert [(file.cell, file.why.partition(" as ")[0]) for file in found.files] == [
        ("[1]", "named in code cell 1"),
        ("helper.py", "named in helper.py"),
    ]


def folds(folder: Path) -> None:
    (folder / "data").mkdir()
    for name in ("data/part1.csv", "data/part2.csv", "data/other.csv", "part1.csv", "part2.txt", "train.csv"):
        (folder / name).write_text("1")


def found_in(folder: Path, source: str) -> DataFiles:
    return collect_data([(source, "cell [1]")], folder, folder, None)


PARTS = ["data/part1.csv", "data/part2.csv"]


@pytest.mark.parametrize(
    ("source", "files"),
    [
        ("open(f'data/part{i}.csv')", PARTS),
        ("open(f'data/part{i:03d}.csv')", PARTS),
        ("open(f'data/part{i}{j}.csv')", PARTS),
        ("open(f'part{i}.csv')", ["part1.csv"]),
        ("open('data/part%s.csv' % name)", PARTS),
        ("open('data/part%(n)02d.csv' % {'n': 1})", PARTS),
        ("open('data/part{}.csv'.format(name))", PARTS),
        ("template = 'data/part{}.csv'\nopen(template.format(name))", PARTS),
        ("open('data/part' + str(i) + '.csv')", PARTS),
        ("open(str(name) + '.txt')", ["part2.txt"]),
        ("open(f'{name}.csv')", ["part1.csv", "train.csv"]),
        ("open(f'{folder}/part{i}.csv')", [*PARTS, "part1.csv"]),
        ("os.path.join(f'dat{a}', f'part{i}.csv')", PARTS),
        ("Path(f'dat{a}') / f'part{i}.csv'", PARTS),
        ("Path(f'dat{a}') / name", ["data/other.csv", *PARTS]),
        ("glob.glob(f'data/part{i}*.csv')", PARTS),
    ],
)
def test_files_of_a_formatted_name_are_sent(source: str, files: list[str], tmp_path: Path) -> None:
    folds(tmp_path)
    found = found_in(tmp_path, source)
    assert sorted(file.target for file in found.files) == files
    assert all(file.why.startswith("named in cell [1] as '") for file in found.files)
    assert (found.rows, found.warnings) == ([], [])


@pytest.mark.parametrize(
    "source",
    [
        "open(f'data/part{i}.csv', 'w')",
        "Path(f'part{i}.csv').write_text('done')",
        "table.to_csv(f'part{i}.csv')",
        "print(f'{a}', f'{a}/{b}', f'part{i}', '%s/%s' % (a, b), 'part%d' % i)",
        "open(f'https://host/part{i}.csv')",
        "x = f'part{i}\\n.csv'",
        "n % 3, n + 1, n / 2, '{'.format(n), a + b",
    ],
)
def test_texts_that_are_no_names_of_files_to_read_send_nothing(source: str, tmp_path: Path) -> None:
    folds(tmp_path)
    assert found_in(tmp_path, source) == DataFiles()


def test_a_pattern_takes_nothing_in_that_nobody_named(tmp_path: Path) -> None:
    (tmp_path / ".hidden").mkdir()
    for name in ("a.json", "credentials.json", ".hidden/a.json", ".b.json", "[x]1.json", "n.ipynb"):
        (tmp_path / name).write_text("1")
    found = found_in(tmp_path, "open(f'{name}.json'), open(f'{name}.ipynb')")
    assert [file.target for file in found.files] == ["[x]1.json", "a.json"]
    (row,) = found.rows
    assert (row.what, row.status) == ("credentials.json", "not sent")
    assert "include=['credentials.json']" in row.note
    assert [file.target for file in found_in(tmp_path, "open(f'[x]{i}.json')").files] == ["[x]1.json"]


def test_a_name_that_is_bound_once_stands_for_its_text_in_other_cells(tmp_path: Path) -> None:
    folds(tmp_path)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "part1.csv").write_text("1")
    cells = [("import os\nMADE = os.path.join('da' + 'ta', '')", "[1]"), ("open(f'{MADE}part1.csv')", "[2]")]
    found = collect_data(cells, tmp_path, tmp_path, tmp_path / "none")
    assert (found.rows, found.warnings) == ([], [])
    found = collect_data(
        [("open(FOLDER + 'part1.csv')", "[3]"), ("FOLDER = 'other/'", "[4]"), *cells], tmp_path, tmp_path, None
    )
    targets = {file.target for file in found.files}
    assert {"data/part1.csv", "other/part1.csv"} <= targets
    assert "part1.csv" not in targets


def test_a_file_that_is_named_and_matches_is_sent_once(tmp_path: Path) -> None:
    folds(tmp_path)
    found = found_in(tmp_path, "open(f'data/{n}.csv'), open(f'part{i}.csv'), open('part1.csv')")
    assert sorted(file.target for file in found.files) == ["data/other.csv", *PARTS, "part1.csv"]


def test_a_pattern_that_stands_for_too_much_is_left_out_and_named(tmp_path: Path) -> None:
    for number in range(51):
        (tmp_path / f"part{number}.csv").write_text("1")
    found = found_in(tmp_path, "open(f'{name}.csv')")
    assert found.files == []
    (row,) = found.rows
    assert (row.what, row.how, row.status, row.cell) == ("*.csv", "pattern", "not sent", "cell [1]")
    assert "include=" in row.note
    assert len(found_in(tmp_path, "open(f'part{name}.csv')").files) == 51


def test_a_pattern_of_large_files_is_left_out_and_named(tmp_path: Path) -> None:
    for number in range(2):
        with (tmp_path / f"part{number}.csv").open("wb") as stream:
            stream.truncate(40 << 20)
    found = found_in(tmp_path, "open(f'part{name}.csv')")
    assert found.files == []
    assert [row.what for row in found.rows] == ["part*.csv"]


def test_a_pattern_that_is_right_in_the_kernel_only_is_warned_of_once(tmp_path: Path) -> None:
    folds(tmp_path)
    found = collect_data([("open(f'other{i}.csv'), open(f'part{i}.csv')", "[1]")], tmp_path, tmp_path / "data", None)
    assert [file.target for file in found.files] == ["data/other.csv", "part1.csv"]
    (warning,) = found.warnings
    assert "'other*.csv', which the worker has as 'data/other.csv'" in warning
    assert collect_data([("open(f'part{i}.csv')", "[1]")], tmp_path, tmp_path, tmp_path).files == []


def test_the_words_of_a_command_line_that_name_files_are_sent(tmp_path: Path) -> None:
    folds(tmp_path)
    words = ["part1.csv", "--table", "train.csv", "--lr", "0.1", "-f=part2.txt", "--verbose", "data"]
    found = collect_data([("import sys", "train.py")], tmp_path, tmp_path, None, arguments=words)
    files = {file.target: (file.why, file.cell) for file in found.files}
    assert sorted(files) == ["data/other.csv", *PARTS, "part1.csv", "part2.txt", "train.csv"]
    assert files["train.csv"] == ("named in the command line as 'train.csv'", "command line")


def test_words_of_a_command_line_for_results_are_not_sent(tmp_path: Path) -> None:
    folds(tmp_path)
    words = ["--output-dir", "data", "--log=part1.csv", "-o", "none", "--save_to", "train.csv"]
    assert collect_data([("", "train.py")], tmp_path, tmp_path, None, arguments=words).files == []


def test_what_a_command_line_names_absolutely_is_sent(tmp_path: Path) -> None:
    folds(tmp_path)
    words = [str(tmp_path / "train.csv")]
    found = collect_data([("", "train.py")], tmp_path, tmp_path, None, arguments=words)
    assert [file.target for file in found.files] == ["train.csv"]
    assert found.warnings == []


def test_paths_are_looked_for_where_the_code_goes(tmp_path: Path) -> None:
    folds(tmp_path)
    (tmp_path / "data" / "deep").mkdir()
    (tmp_path / "data" / "deep" / "a.csv").write_text("1")
    source = "os.chdir(Path('data'))\nos.chdir('deep')\nopen('a.csv'), open('../../train.csv'), open(f'../part{i}.csv')"
    for working_directory in (tmp_path, tmp_path / "data" / "deep"):
        found = collect_data([(source, "[1]")], tmp_path, working_directory, None)
        targets = [file.target for file in found.files]
        assert sorted(targets) == ["data/deep/a.csv", "data/other.csv", *PARTS, "part1.csv", "train.csv"]
        assert (found.rows, found.warnings) == ([], [])


def test_a_folder_that_no_program_reads_is_not_taken_in_by_its_name(tmp_path: Path) -> None:
    (tmp_path / "__pycache__").mkdir()
    (tmp_path / "__pycache__" / "own.dat").write_text("x")
    found = collect_data([("skipped = '__pycache__'", "[1]")], tmp_path, tmp_path, None)
    assert found.files == []


def test_a_folder_that_vanishes_while_it_is_looked_through_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("kept/a.csv", "gone/b.csv"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).touch()

    def is_hidden(relative: Path) -> bool:
        if relative.name == "gone":
            shutil.rmtree(tmp_path / "gone")
        return False

    monkeypatch.setattr(folders, "is_hidden", is_hidden)
    assert folders.files_in(tmp_path) == [tmp_path / "kept/a.csv"]


@pytest.mark.parametrize(
    "source",
    [
        "table = pd.read_csv('data/gone.csv')",
        "np.load(os.path.join('data', 'gone.npy'))",
        "text = Path('data/gone.txt').read_text()",
        "json.load(open('gone.json'))\njson.load(open('gone.json'))",
        "pd.read_csv(GONE)\nGONE = 'data/gone.csv'",
    ],
)
def test_a_file_that_is_read_and_not_there_is_told_with_its_line(source: str, tmp_path: Path) -> None:
    titles = {"cell [1]": "Cell [1]"}
    (warning,) = collect_data([("import os\n" + source, "cell [1]")], tmp_path, tmp_path, None, titles).warnings
    name = source.partition("gone")[2][: source.partition("gone")[2].index("'")]
    folder = "" if name == ".json" else "data/"
    assert warning == (
        f"Cell [1], line 2, reads '{folder}gone{name}', which is not there: the worker will not find it either. "
        f"Correct the path (it is looked for in {tmp_path}), or let the code make the file."
    )
    (tmp_path / "data").mkdir()
    (tmp_path / f"{folder}gone{name}").write_text("1")
    assert not collect_data([(source, "cell [1]")], tmp_path, tmp_path, None).warnings


@pytest.mark.parametrize(
    "source",
    [
        "open('gone.txt', 'w').write('1')\nopen('gone.txt').read()",
        "np.savez('gone.npz', x)\nnp.load('gone.npz')",
        "if not os.path.exists('gone.txt'):\n    make('gone.txt')\nopen('gone.txt')",
        "try:\n    open('gone.txt')\nexcept FileNotFoundError:\n    pass",
        "get_ipython().system('wget http://host/gone.csv')\npd.read_csv('gone.csv')",
        "zipfile.ZipFile(archive).extractall()\npd.read_csv('gone.csv')",
        "pd.read_csv('http://host/gone.csv')",
        "pd.read_csv(f'gone{number}.csv')",
        "pd.read_csv(name)",
        "torch.load('weights')",
        "pd.read_sql('select a from t.csv', base)",
    ],
)
def test_a_file_that_the_code_may_make_itself_is_not_told(source: str, tmp_path: Path) -> None:
    assert not collect_data([(source, "cell [1]")], tmp_path, tmp_path, None).warnings


def test_links_to_folders_are_followed_inside_and_named_outside(tmp_path: Path) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside"
    for folder in (root / "data", root / "other", outside):
        folder.mkdir(parents=True)
        (folder / "x.csv").write_text("1")
    (root / "data" / "near").symlink_to(root / "other")
    (root / "data" / "far").symlink_to(outside)
    (root / "data" / "round").symlink_to(root)
    found = found_in(root, "os.walk('data')")
    assert [file.target for file in found.files] == ["data/x.csv", "data/near/x.csv"]
    notes = {row.what: row.note for row in found.rows}
    assert notes["data/round"] == "a link to a folder that it lies in"
    assert notes["data/far"] == (
        f"leads through a link to {outside}, outside of what is sent: include=['data/far'] sends it"
    )
    [row] = found_in(root, "open('data/far/x.csv')").rows
    assert "include=['data/far/x.csv'] sends it" in row.note
    (tmp_path / "up.csv").write_text("1")
    [row] = found_in(root, "open('../up.csv')").rows
    assert row.note == "outside of what is sent: the worker has nothing by this name"


@pytest.mark.parametrize(
    ("source", "folders"),
    [
        ("torch.save(m, 'out/best.pt')", ["out"]),
        ("torch.save(m, f'out/{name}.pt')", ["out"]),
        ("ModelCheckpoint('out/best.keras')", ["out"]),
        ("ModelCheckpoint('empty')", ["empty"]),
        ("ModelCheckpoint('HERE/out/best.keras')", ["out"]),
        ("shutil.rmtree('out')", []),  # its files travel
        ("torch.save(m, 'missing/best.pt')", []),
        ("torch.save(m, 'best.pt')", []),
        ("os.makedirs('out')\ntorch.save(m, 'out/best.pt')", []),
        ("p = Path('out')\np.mkdir()\ntorch.save(m, p / 'best.pt')", []),
        ("os.makedirs('out', exist_ok=True)\ntorch.save(m, 'out/best.pt')", ["out"]),
        ("if not os.path.exists('out'):\n    os.makedirs('out')\ntorch.save(m, 'out/best.pt')", []),  # its files travel
    ],
)
def test_folders_that_have_to_be_there(source: str, folders: list[str], tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "old.txt").write_text("1")
    (tmp_path / "empty").mkdir()
    found = found_in(tmp_path, source.replace("HERE", str(tmp_path)))
    sent = {file.target.rpartition("/")[0] for file in found.files}
    assert [folder for folder in found.folders if folder not in sent] == folders


def test_a_folder_of_which_the_user_leaves_out_the_files_is_there_to_be_written_to_only(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "old.txt").write_text("1")

    def folders(source: str) -> list[str]:
        return collect_data([(source, "[1]")], tmp_path, tmp_path, tmp_path).folders

    assert folders("if not os.path.exists('out'):\n    download()\nread('out/old.txt')") == []
    assert folders("torch.save(m, 'out/best.pt')") == ["out"]


def test_folders_of_a_command_line(tmp_path: Path) -> None:
    (tmp_path / "results").mkdir()
    words = ["--output-dir", "results"]
    assert collect_data([("", "train.py")], tmp_path, tmp_path, None, arguments=words).folders == ["results"]
