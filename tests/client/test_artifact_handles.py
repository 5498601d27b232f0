"""Files that trials have written, as a user holds them: listed, found by path, read by their endings, copied."""

from __future__ import annotations

import hashlib
import json
import pickle
from pathlib import Path
from typing import Any

import numpy
import pandas
import pytest
from click.testing import CliRunner
from made_experiments import make_experiment, source_of
from master_parts import Master
from put_experiments import put_experiment

from det_native.client.artifacts import Artifacts, shown_size
from det_native.client.command import cli
from det_native.client.file_formats import read_file
from det_native.client.source import Source
from det_native.errors import ArgumentError, NotFoundError, StorageError, UnsupportedFeatureError
from det_native.schema import rest


def row(path: str, content: bytes | None = b"", batch: int = 5, note: str = "") -> rest.Artifact:
    sha256 = None if content is None else hashlib.sha256(content).hexdigest()
    size = 9 if content is None else len(content)
    return rest.Artifact(trial_id=4, path=path, sha256=sha256, size=size, batch=batch, note=note, created="")


class Contents(Source):
    """Gives the contents that it was made with, and counts how often."""

    def __init__(self, **contents: bytes) -> None:
        self.contents = contents
        self.given = 0

    def artifact_content(self, artifact: rest.Artifact, target: Path) -> None:
        self.given += 1
        target.write_bytes(self.contents[artifact.path])


def artifacts(contents: dict[str, bytes], *more: rest.Artifact) -> Artifacts:
    rows = [row(path, content) for path, content in contents.items()]
    return Artifacts(Contents(**contents), "trial 4", [*rows, *more])


def test_a_file_is_found_by_its_number_and_by_its_path() -> None:
    found = artifacts({"best.pt": b"1", "logs/run.csv": b"a\n1"})
    assert found[0].path == found["best.pt"].path == found["./best.pt"].path == "best.pt"
    assert [each.path for each in found[-1:]] == found.paths[1:] == ["logs/run.csv"]
    assert ("logs/run.csv" in found, "run.csv" in found, len(found)) == (True, False, 2)
    assert (found[1].size, found[1].batch, found[1].note) == (3, 5, "")


@pytest.mark.parametrize(
    ("wanted", "sentence"),
    [
        ("bset.pt", "did you mean 'best.pt'?"),
        ("run.csv", "did you mean 'logs/run.csv'?"),
        ("rum.csv", "did you mean 'logs/run.csv'?"),
        ("zzz", "it has written best.pt, logs/run.csv."),
    ],
)
def test_a_name_that_is_not_there_is_told_with_those_that_are_close(wanted: str, sentence: str) -> None:
    found = artifacts({"best.pt": b"1", "logs/run.csv": b"a\n1"})
    with pytest.raises(NotFoundError) as told:
        found[wanted]
    assert str(told.value).startswith(f"Trial 4 has written no file '{wanted}'; ")
    assert sentence in str(told.value)


def test_of_a_trial_without_files_that_is_said() -> None:
    found = artifacts({})
    assert repr(found) == "No file of trial 4"
    with pytest.raises(NotFoundError, match="nor any other"):
        found["best.pt"]
    with pytest.raises(IndexError, match="has written no file"):
        found[0]


def test_the_list_shows_path_size_batch_and_why_a_file_is_not_kept() -> None:
    found = artifacts({"best.pt": b"1" * 12_345}, row("huge.bin", None, note="Too large."))
    lines = repr(found).splitlines()
    assert lines[0] == "2 files of trial 4"
    assert lines[1].split() == ["path", "size", "batch", "note"]
    assert lines[2].split() == ["0", "best.pt", "12.3", "kB", "5"]
    assert lines[3].split() == ["1", "huge.bin", "9", "B", "5", "Too", "large."]
    assert repr(found[0]) == "<Artifact 'best.pt', 12.3 kB, batch 5>"
    assert repr(found[1]) == "<Artifact 'huge.bin', 9 B, batch 5, not kept>"


def test_a_long_list_is_shown_in_a_few_lines() -> None:
    lines = repr(artifacts({f"{number:03}.png": b"1" for number in range(100)})).splitlines()
    assert len(lines) == 15
    assert "88 more" in lines[8]


def test_sizes_are_shown_in_words() -> None:
    shown = [shown_size(size) for size in (0, 999, 1_000, 999_949, 999_951, 2_500_000_000, 5_000_000_000_000)]
    assert shown == ["0 B", "999 B", "1.0 kB", "999.9 kB", "1.0 MB", "2.5 GB", "5000.0 GB"]


def saved(path: Path, value: Any) -> Path:
    numpy.savez(path, **value) if isinstance(value, dict) else numpy.save(path, value)
    return path


def test_files_are_read_by_their_endings(tmp_path: Path) -> None:
    array = read_file(saved(tmp_path / "a.npy", numpy.arange(3)), "a.npy")
    assert array.tolist() == [0, 1, 2]
    arrays = read_file(saved(tmp_path / "a.npz", {"x": numpy.ones(2)}), "a.npz")
    assert {name: value.tolist() for name, value in arrays.items()} == {"x": [1.0, 1.0]}
    for name, text in (("t.csv", "a,b\n1,x\n"), ("t.tsv", "a\tb\n1\tx\n")):
        (tmp_path / name).write_text(text)
        frame = read_file(tmp_path / name, name)
        assert isinstance(frame, pandas.DataFrame)
        assert frame.to_dict("records") == [{"a": 1, "b": "x"}]
    (tmp_path / "m.json").write_text('{"f1": 0.5}')
    assert read_file(tmp_path / "m.json", "m.json") == {"f1": 0.5}
    (tmp_path / "m.jsonl").write_text('{"f1": 0.5}\n\n3\n')
    assert read_file(tmp_path / "m.jsonl", "m.jsonl") == [{"f1": 0.5}, 3]
    (tmp_path / "l.log").write_bytes(b"line\xff\n")
    assert read_file(tmp_path / "l.log", "l.log") == "line\\xff\n"
    (tmp_path / "events").write_bytes(b"\x00\x01")
    assert read_file(tmp_path / "events", "events") == b"\x00\x01"


def test_a_picture_is_an_array(tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image")
    image.fromarray(numpy.full((2, 3, 3), 7, dtype="uint8")).save(tmp_path / "p.png")
    assert read_file(tmp_path / "p.png", "p.png").shape == (2, 3, 3)


def test_weights_are_tensors_and_nothing_that_is_read_runs_code(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    torch.save({"weight": torch.ones(2)}, tmp_path / "best.pt")
    assert read_file(tmp_path / "best.pt", "best.pt")["weight"].tolist() == [1.0, 1.0]
    torch.save(Path("object"), tmp_path / "whole.pt")
    with pytest.raises(UnsupportedFeatureError, match="weights_only=False"):
        read_file(tmp_path / "whole.pt", "whole.pt")
    (tmp_path / "model.pkl").write_bytes(pickle.dumps({"x": 1}))
    with pytest.raises(UnsupportedFeatureError, match="If you trust it"):
        read_file(tmp_path / "model.pkl", "model.pkl")
    numpy.save(tmp_path / "o.npy", numpy.array([{}], dtype=object))
    with pytest.raises(StorageError, match=r"cannot be read as \.npy"):
        read_file(tmp_path / "o.npy", "o.npy")


def test_what_is_not_what_its_ending_says_is_told(tmp_path: Path) -> None:
    (tmp_path / "m.json").write_text("{")
    with pytest.raises(StorageError, match=r"'m.json' cannot be read as .json: .* download\(\) copies the file"):
        read_file(tmp_path / "m.json", "m.json")


def test_loading_reads_what_the_master_has() -> None:
    assert artifacts({"log.txt": b"hello"})["log.txt"].load() == "hello"


def test_a_file_is_copied_under_its_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    found = artifacts({"logs/run.csv": b"a\n1", "best.pt": b"1"})
    assert found["logs/run.csv"].download() == Path("logs/run.csv")
    assert found.download(tmp_path / "new" / "folder") == [
        tmp_path / "new/folder/logs/run.csv",
        tmp_path / "new/folder/best.pt",
    ]
    assert (tmp_path / "new/folder/logs/run.csv").read_bytes() == Path("logs/run.csv").read_bytes() == b"a\n1"


def test_a_copy_is_never_over_a_file_with_another_content(tmp_path: Path) -> None:
    source = Contents(a=b"new", b=b"new")
    found = Artifacts(source, "trial 4", [row("a", b"new"), row("b", b"new")])
    (tmp_path / "b").write_bytes(b"mine")
    for download in (found.download, found["b"].download):
        with pytest.raises(StorageError, match="has another content; nothing is written"):
            download(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["b"]
    assert (tmp_path / "b").read_bytes() == b"mine"
    found.download(tmp_path, overwrite=True)
    assert (tmp_path / "b").read_bytes() == b"new"
    given = source.given
    found.download(tmp_path)  # the same contents: nothing is to be done
    assert source.given == given


def test_nothing_is_written_outside_of_the_folder(tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "link").symlink_to(tmp_path / "outside")
    for path in ("../evil", "/etc/evil", "link/evil", "a/../../evil"):
        contents = Contents(**{path: b"x"})
        with pytest.raises(StorageError, match="leads out of the folder"):
            Artifacts(contents, "trial 4", [row(path, b"x")]).download(folder)
    assert [path.name for path in tmp_path.rglob("*") if path.name == "evil"] == []


def test_what_was_not_kept_is_left_out_with_a_warning(tmp_path: Path) -> None:
    found = artifacts({"a": b"1"}, row("huge", None, note="Too large."))
    with pytest.warns(UserWarning, match="not kept: huge"):
        assert found.download(tmp_path) == [tmp_path / "a"]


def test_a_folder_has_to_be_one(tmp_path: Path) -> None:
    found = artifacts({"a": b"1"})
    (tmp_path / "file").touch()
    with pytest.raises(ArgumentError, match="is a file"):
        found.download(tmp_path / "file")
    with pytest.raises(ArgumentError, match="not 3"):
        found["a"].download(3)  # type: ignore[arg-type]
    (tmp_path / "a").mkdir()
    with pytest.raises(StorageError, match="is a folder"):
        found.download(tmp_path)


def test_the_files_of_an_experiment_are_those_of_its_best_trial() -> None:
    experiment = make_experiment(trials=3)
    source_of(experiment).written = [row(f"log-{trial}.csv").model_copy(update={"trial_id": trial}) for trial in (1, 3)]
    assert experiment.artifacts.paths == ["log-3.csv"]


def command(*words: str) -> tuple[int, str]:
    result = CliRunner().invoke(cli, ["trial", "files", *words])
    return result.exit_code, result.output


@pytest.mark.slow
def test_the_command_shows_and_copies_them(named_master: Master, tmp_path: Path) -> None:
    file = {"path": "log-1.csv", "sha256": hashlib.sha256(b"a\n1\n").hexdigest(), "size": 4, "batch": 5}
    number = put_experiment(named_master, contents={"log-1.csv": b"a\n1\n"}, written=[file])
    name = f"{number}.1"
    code, text = command(name)
    assert code == 0
    assert text.splitlines()[0].split() == ["file", "bytes", "batch", "note"]
    assert text.splitlines()[1].split() == ["log-1.csv", "4", "5"]
    code, text = command(name, "--json")
    assert (code, json.loads(text)[0]["path"]) == (0, "log-1.csv")
    code, text = command(name, "--download", str(tmp_path / "copies"), "log-1.csv")
    assert (code, text) == (0, f"1 file in {tmp_path / 'copies'}.\n")
    assert (tmp_path / "copies" / "log-1.csv").read_text() == "a\n1\n"
    code, text = command(name, "log-2.csv")
    assert code != 0
