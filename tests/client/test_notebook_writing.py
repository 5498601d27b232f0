"""An experiment's program written back as a notebook, and run."""

import hashlib
import json
from pathlib import Path
from typing import Any

import nbformat
import numpy as np
import pytest
from nbclient import NotebookClient

from det_native.capture.carry import pack
from det_native.client.notebook import write_notebook
from det_native.errors import ArgumentError, BundleCorruptError
from det_native.schema.manifests import BundleManifest, Cell, FileEntry, Interpreter, Program, ReadEntry, ValueEntry


class Blobs(dict[str, bytes]):
    """Content by its hash."""

    def add(self, content: bytes) -> str:
        key = hashlib.sha256(content).hexdigest()
        self[key] = content
        return key

    def value(self, name: str, value: Any, before_cell: int = 0) -> ValueEntry:
        content = pack([name], {name: value}).content
        return ValueEntry(name=name, sha256=self.add(content), size=len(content), before_cell=before_cell)

    def file(self, path: str, content: bytes) -> FileEntry:
        return FileEntry(path=path, sha256=self.add(content), size=len(content))


def manifest(program: Program, **parts: Any) -> BundleManifest:
    return BundleManifest(
        protocol=1, interpreter=Interpreter(python="3.11.7", executable="python"), program=program, **parts
    )


def cells(*sources: str) -> Program:
    return Program(
        kind="cells",
        framework="torch",
        cells=tuple(
            Cell(number=number * 3, cell_id="same" if number < 2 else None, source=source)
            for number, source in enumerate(sources)
        ),
    )


@pytest.mark.slow
def test_the_notebook_runs(tmp_path: Path) -> None:
    blobs = Blobs()
    written = manifest(
        cells("import helper\ntotal = x.sum() + scale", "total = helper.double(total) + bias"),
        files=(blobs.file("helper.py", b"def double(x):\n    return 2 * x\n"),),
        values=(
            blobs.value("x", np.arange(4)),
            blobs.value("scale", 10),
            blobs.value("bias", 0.5, before_cell=1),
        ),
        requirements=("numpy",),
    )
    path = write_notebook(written, blobs.__getitem__, tmp_path / "again.ipynb", title="Experiment 7: digits")
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    assert [cell.cell_type for cell in notebook.cells] == ["markdown", "code", "code", "code", "code"]
    notebook.cells.append(nbformat.v4.new_code_cell("print(total)"))
    NotebookClient(notebook, resources={"metadata": {"path": str(tmp_path)}}, timeout=60).execute()
    assert notebook.cells[-1].outputs[0]["text"].strip() == "32.5"


def test_cells_come_in_order_with_unique_ids_and_nothing_else(tmp_path: Path) -> None:
    path = write_notebook(manifest(cells("a = 1", "b = 2", "c = 3")), {}.__getitem__, tmp_path / "n.ipynb", title="t")
    document = json.loads(path.read_text())
    assert [cell["source"] for cell in document["cells"][1:]] == ["a = 1", "b = 2", "c = 3"]
    ids = [cell["id"] for cell in document["cells"]]
    assert len(set(ids)) == len(ids)
    assert [each.name for each in tmp_path.iterdir()] == ["n.ipynb"]


def test_a_script_is_run_with_its_arguments(tmp_path: Path) -> None:
    blobs = Blobs()
    program = Program(kind="script", framework="keras", command=("train.py", "--name", "two words"))
    written = manifest(program, files=(blobs.file("train.py", b"pass\n"),))
    path = write_notebook(written, blobs.__getitem__, tmp_path / "n.ipynb", title="t")
    assert json.loads(path.read_text())["cells"][-1]["source"] == "%run train.py --name 'two words'"
    assert (tmp_path / "train.py").read_text() == "pass\n"


def test_files_that_exist_are_never_overwritten(tmp_path: Path) -> None:
    blobs = Blobs()
    (tmp_path / "mine.py").write_text("mine")
    (tmp_path / "same.py").write_text("same")
    files = (blobs.file("mine.py", b"theirs"), blobs.file("same.py", b"same"))
    with pytest.warns(UserWarning, match=r"left as they are: mine.py\."):
        write_notebook(manifest(cells("a"), files=files), blobs.__getitem__, tmp_path / "n.ipynb", title="t")
    assert (tmp_path / "mine.py").read_text() == "mine"
    with pytest.raises(ArgumentError, match="exists"):
        write_notebook(manifest(cells("a")), blobs.__getitem__, tmp_path / "n.ipynb", title="t")
    with pytest.raises(ArgumentError, match=r"must end in \.ipynb"):
        write_notebook(manifest(cells("a")), blobs.__getitem__, tmp_path / "n.py", title="t")


def test_files_of_a_program_are_beside_its_notebook_or_named_in_it(tmp_path: Path) -> None:
    blobs = Blobs()
    (tmp_path / "mine.py").write_text("mine")
    written = manifest(
        cells("import lib.utils"),
        files=(blobs.file("lib/utils.py", b"rate = 1\n"), blobs.file("mine.py", b"theirs")),
        links=(FileEntry(path="data/big.npy", sha256="0" * 64, size=1 << 30),),
        reads=(ReadEntry(path="/shared/images", where="cell [1], line 1"),),
        values=(blobs.value("x", np.arange(4)),),
    )
    with pytest.warns(UserWarning, match="store of data") as warned:
        path = write_notebook(written, blobs.__getitem__, tmp_path / "n.ipynb", title="t")
    assert any("data/big.npy" in str(each.message) for each in warned)
    assert (tmp_path / "lib/utils.py").read_text() == "rate = 1\n"
    said = json.loads(path.read_text())["cells"][0]["source"].splitlines()
    assert "Files that were sent, beside this notebook: `lib/utils.py`." in said
    assert "Files that were here with another content, and were left as they are: `mine.py`." in said
    assert "Files of the cluster's store of data are not beside the notebook: `data/big.npy`." in said
    assert "Paths that the workers have are read: `/shared/images`." in said
    assert "Values that were sent: in `n_values/`." in said


@pytest.mark.parametrize("path", ["../x", "/x", "a/../../x", "a\\x", "."])
def test_paths_that_leave_the_folder_are_refused(tmp_path: Path, path: str) -> None:
    blobs = Blobs()
    folder = tmp_path / "inside"
    with pytest.raises(BundleCorruptError, match="leaves the folder"):
        write_notebook(
            manifest(cells("a"), files=(blobs.file(path, b"x"),)), blobs.__getitem__, folder / "n.ipynb", title="t"
        )
    assert [each.name for each in tmp_path.iterdir()] == ["inside"]


def test_content_that_does_not_match_its_hash_is_refused(tmp_path: Path) -> None:
    blobs = Blobs()
    entry = blobs.file("x.py", b"right")
    with pytest.raises(BundleCorruptError, match=r"x\.py does not match"):
        write_notebook(manifest(cells("a"), files=(entry,)), lambda key: b"wrong", tmp_path / "n.ipynb", title="t")
