"""What travels from a real kernel, and how: values, modules, data files; and what never does."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from kernels import Kernel, decoded

pytestmark = pytest.mark.slow
Replayed = Callable[..., dict[str, Any]]


def test_a_large_array_is_made_again_by_its_cell(kernel: Kernel, replayed: Replayed) -> None:
    kernel.cells("import numpy as np", "big = np.zeros(25_000_000)", "def load():\n    return big[:3]", "fit(load)")
    found = kernel.found()
    assert found.values == []
    assert replayed(found, "load()") == kernel.live("load()")
    row = found.row("big")
    assert (row.how, row.size, row.status, row.cell) == ("made again", 200_000_000, "not sent", "[3]")
    assert "values=['big'] sends it instead" in row.note


def test_a_large_array_whose_source_is_gone_is_named_with_the_way_to_it(kernel: Kernel) -> None:
    kernel.run("import numpy; get_ipython().user_ns['big'] = numpy.zeros(25_000_000)", silent=True)
    kernel.cells(
        "def load_batch():\n    return big[:3]", "def train_step():\n    return load_batch()", "fit(train_step)"
    )
    assert (
        "Cell [4] uses `big` (numpy.ndarray, 200 MB): train_step -> load_batch -> big. Values over 64 MiB are "
        "not sent unasked. Load it inside your data function, or declare it: init(..., values=['big'])."
        in kernel.found().error
    )


def test_a_declared_array_is_sent_and_its_cell_does_not_run(kernel: Kernel, replayed: Replayed) -> None:
    kernel.cells(
        "import numpy as np",
        "open('ran.txt', 'a').write('x')\nx_train = np.arange(300_000)",
        "x_train = x_train * 2",
        "fit(x_train, values=['x_train'])",
    )
    found = kernel.found()
    assert found.needs_none_of(3, 4)
    [value] = found.values
    assert value[0] == "x_train"
    assert replayed(found, "x_train[-1]", "x_train.shape") == {"x_train[-1]": "599998", "x_train.shape": "(300000,)"}


def test_a_declared_value_stands_in_only_after_its_last_change(kernel: Kernel, replayed: Replayed) -> None:
    kernel.cells("x = [1]", "y = [x[0]]", "x = [5]", "fit(x, y, values=['x'])")
    found = kernel.found()
    assert replayed(found, "x", "y") == {"x": "[5]", "y": "[1]"}


def test_a_declared_value_goes_through_functions_of_local_modules(kernel: Kernel, replayed: Replayed) -> None:
    (kernel.folder / "scaling.py").write_text("def scaled(x):\n    return [n * 10 for n in x]\n")
    kernel.cells(
        "import scaling\nopen('ran.txt', 'a').write('x')\nx = [1]",
        "def twice(x):\n    return scaling.scaled(x) + scaling.scaled(x)",
        "fit(scaling.scaled(x), twice(x), scaling.scaled(x), values=['x'])",
    )
    found = kernel.found()
    assert found.warnings == []
    assert [value[0] for value in found.values] == ["x"]
    assert replayed(found, "x") == {"x": "[1]"}


@pytest.mark.parametrize("line", ["x = [2]", "x.append(2)", "x += [2]"], ids=["set", "appended", "added"])
def test_a_declared_value_that_the_calling_cell_makes_is_made_there(
    kernel: Kernel, line: str, request: pytest.FixtureRequest
) -> None:
    module = f"scaling_{request.node.callspec.id}".replace("-", "_")
    (kernel.folder / f"{module}.py").write_text("def scaled(x):\n    return [n * 10 for n in x]\n")
    kernel.cells(f"import {module}\nx = [1]", f"{line}\nfit({module}.scaled(x), values=['x'])")
    found = kernel.found()
    assert found.values == []
    assert any("sets or changes `x` itself" in warning for warning in found.warnings)


def test_declaring_what_does_not_exist_is_an_error(kernel: Kernel) -> None:
    kernel.run("fit(values=['nowhere'])")
    assert "values='nowhere': there is no such name in the notebook." in kernel.found().error


@pytest.mark.parametrize(
    ("inject", "shown"),
    [
        ("epochs = 5", "5"),
        ("cfg = {'lr': [0.1, 0.2]}", "{'lr': [0.1, 0.2]}"),
        ("path = __import__('pathlib').Path('a')", None),
    ],
)
def test_small_values_whose_source_is_gone_are_sent_by_value(
    kernel: Kernel, replayed: Replayed, inject: str, shown: str | None
) -> None:
    name = inject.split()[0]
    kernel.run(f"exec({inject!r}, get_ipython().user_ns)", silent=True)
    kernel.cells("noise = 1", f"fit({name})")
    found = kernel.found()
    assert found.needs_none_of(2)
    assert found.value_names == {name}
    assert replayed(found, name) == kernel.live(name)
    assert shown is None or kernel.live(name)[name] == shown


def test_a_value_that_was_changed_later_does_not_stand_in_for_the_earlier_one(
    kernel: Kernel, replayed: Replayed
) -> None:
    kernel.run("exec('cfg = {\"lr\": 1}', get_ipython().user_ns)", silent=True)
    kernel.cells("used = dict(cfg)", "cfg['lr'] = 2", "fit(used)")
    assert replayed(kernel.found(), "used") == {"used": "{'lr': 1}"}
    kernel.run("used = (key for key in cfg)\ncfg['lr'] = 3", tags=("det-include",))
    kernel.run("fit(used)")
    assert "Cell [5] uses `cfg`, which no executed cell defines and which a later cell changed" in kernel.found().error


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("__import__('threading').Lock()", "threading.Lock"),
        ("open('some.txt', 'w')", "an open file"),
        ("(i for i in range(3))", "a generator"),
        ("__import__('sqlite3').connect(':memory:')", "sqlite3.Connection"),
        ("__import__('socket').socket()", "socket.socket"),
    ],
)
def test_locks_handles_and_generators_are_never_sent(kernel: Kernel, replayed: Replayed, value: str, said: str) -> None:
    kernel.run(f"get_ipython().user_ns['thing'] = {value}", silent=True)
    kernel.cells("def train_step():\n    return thing", "fit(train_step)")
    assert (
        f"Cannot send `thing` ({said}), used in train_step. Create it inside the function or in setup()."
        in kernel.found().error
    )
    kernel.run(f"thing = {value}")
    kernel.run("fit(train_step)")
    found = kernel.found()
    assert found.values == []
    kernel.run("fit(train_step, values=['thing'])")
    assert f"Cannot send `thing` ({said}), declared in values=." in kernel.found().error


def test_datasets_are_never_sent(kernel: Kernel) -> None:
    kernel.run(
        "class Dataset: pass\nDataset.__module__ = 'torch.utils.data.dataset'\n"
        "get_ipython().user_ns['ds'] = Dataset()\ndel Dataset",
        silent=True,
    )
    kernel.run("fit(ds)")
    assert "Cannot send `ds` (torch.utils.data.dataset.Dataset)" in kernel.found().error


def test_an_instance_of_a_notebook_class_is_of_the_class_that_its_cell_makes(
    kernel: Kernel, replayed: Replayed
) -> None:
    kernel.cells("class Config:\n    lr = 1", "config = Config()", "fit(config, values=['config'])")
    found = kernel.found()
    assert found.value_names == {"config"}
    assert replayed(found, "type(config) is Config") == {"type(config) is Config": "True"}


def test_values_that_are_too_many_together(kernel: Kernel) -> None:
    for index in range(3):
        kernel.run(f"import numpy; get_ipython().user_ns['part{index}'] = numpy.zeros(4_000_000)", silent=True)
    kernel.run("fit(part0, part1, part2)")
    error = kernel.found().error
    assert error.count("\n  - ") == 1
    assert "used in cell [2], cannot be sent: values that are sent unasked come to more than 64 MiB" in error
    assert "values=['part" in error


def test_a_local_module_and_a_csv_beside_the_notebook(kernel: Kernel, replayed: Replayed) -> None:
    folder = kernel.folder
    (folder / "helpers.py").write_text("from deeper import load\nimport package.part\nNAMES = 'names.txt'\n")
    (folder / "deeper.py").write_text("def load(path):\n    return open(path).read()\n")
    (folder / "package").mkdir()
    (folder / "package" / "__init__.py").write_text("")
    (folder / "package" / "part.py").write_text("from . import other\n")
    (folder / "package" / "other.py").write_text("X = 1\n")
    (folder / "unused.py").write_text("")
    (folder / "names.txt").write_text("n")
    (folder / "data").mkdir()
    (folder / "data" / "train.csv").write_text("a,b\n1,2\n")
    (folder / "other.csv").write_text("not named")
    kernel.cells("import helpers", "text = helpers.load('data/train.csv')", "fit(text)")
    found = kernel.found()
    targets = {target for _, target, _, _ in found.files}
    assert targets == {
        *("helpers.py", "deeper.py", "package/__init__.py", "package/part.py", "package/other.py"),
        *("data/train.csv", "names.txt"),
    }
    assert replayed(found, "text") == {"text": "'a,b\\n1,2\\n'"}


def test_the_notebooks_folder_counts_even_if_the_kernel_went_elsewhere(kernel: Kernel, tmp_path: Path) -> None:
    (kernel.folder / "beside.py").write_text("X = 1\n")
    kernel.run(
        f"import os, sys\nsys.path.insert(0, {str(kernel.folder)!r})\n"
        f"get_ipython().user_ns['__session__'] = {str(kernel.folder / 'my.ipynb')!r}\nos.chdir({str(tmp_path)!r})",
        silent=True,
    )
    kernel.cells("import beside", "fit(beside.X)")
    assert [target for _, target, _, _ in kernel.found().files] == ["beside.py"]


def test_a_folder_and_a_joined_path_are_sent_as_files(kernel: Kernel, replayed: Replayed) -> None:
    (kernel.folder / "images" / "a").mkdir(parents=True)
    (kernel.folder / "images" / "a" / "1.txt").write_text("one")
    (kernel.folder / "notes").mkdir()
    (kernel.folder / "notes" / "x.txt").write_text("x")
    (kernel.folder / "notes" / "y.txt").write_text("y")
    kernel.cells(
        "import os\nfrom pathlib import Path",
        "count = len(os.listdir('images'))\nx = (Path('notes') / 'x.txt').read_text()",
        "fit(count, x)",
    )
    found = kernel.found()
    assert {target for _, target, _, _ in found.files} == {"images/a/1.txt", "notes/x.txt"}
    assert replayed(found, "count", "x") == {"count": "1", "x": "'x'"}


@pytest.mark.parametrize("named", [True, False], ids=["as a server tells it", "as the kernel began"])
def test_a_cell_that_changes_the_folder_does_so_on_the_worker(kernel: Kernel, replayed: Replayed, named: bool) -> None:
    (kernel.folder / "data").mkdir()
    (kernel.folder / "data" / "a.csv").write_text("1")
    (kernel.folder / "words.txt").write_text("one")
    if named:
        kernel.run(f"__session__ = {str(kernel.folder / 'my.ipynb')!r}", silent=True)
    kernel.cells("import os\nos.chdir('data')", "text = open('a.csv').read(), open('../words.txt').read()", "fit(text)")
    found = kernel.found()
    assert {target for _, target, _, _ in found.files} == {"data/a.csv", "words.txt"}
    assert found.warnings == []
    assert replayed(found, "text") == {"text": "('1', 'one')"}


def test_a_magic_that_changes_the_folder_changes_what_paths_are_relative_to(kernel: Kernel, replayed: Replayed) -> None:
    (kernel.folder / "data").mkdir()
    (kernel.folder / "data" / "a.csv").write_text("1")
    kernel.cells("%cd data", "text = open('a.csv').read()", "fit(text)")
    found = kernel.found()
    assert [target for _, target, _, _ in found.files] == ["a.csv"]
    assert replayed(found, "text") == {"text": "'1'"}


def test_files_elsewhere_are_named_in_the_report(kernel: Kernel, tmp_path: Path) -> None:
    outside = tmp_path / "far.csv"
    outside.write_text("1")
    kernel.cells(f"text = open({str(outside)!r}).read()", "fit(text)")
    row = kernel.found().row(str(outside))
    assert (row.status, row.note) == ("not sent", "read from where the worker can see it")


def test_what_a_link_leads_to_is_included_by_the_name_that_the_code_has(
    kernel: Kernel, tmp_path: Path, replayed: Replayed
) -> None:
    far = tmp_path / "far"
    far.mkdir()
    (far / "a.csv").write_text("7")
    (kernel.folder / "data").symlink_to(far)
    kernel.cells("text = open('data/a.csv').read()", "fit(text, include=['data'])")
    found = kernel.found()
    assert [target for _, target, _, _ in found.files] == ["data/a.csv"]
    assert [row.what for row in found.rows if row.how == "path"] == []
    assert replayed(found, "text") == {"text": "'7'"}


def test_a_module_from_elsewhere_must_be_included(kernel: Kernel, tmp_path: Path, replayed: Replayed) -> None:
    (tmp_path / "library").mkdir()
    module = tmp_path / "library" / "faraway.py"
    module.write_text("X = 7\n")
    kernel.cells(f"import sys\nsys.path.append({str(tmp_path / 'library')!r})", "import faraway", "fit(faraway)")
    assert (
        f"`faraway.py` is imported from outside the notebook's folder ({tmp_path / 'library'}). "
        f"Add it: init(..., include=['{module}'])." in kernel.found().error
    )
    kernel.run(f"fit(faraway, include=[{str(module)!r}])")
    found = kernel.found()
    assert [target for _, target, _, _ in found.files] == ["faraway.py"]
    assert replayed(found, "faraway.X") == {"faraway.X": "7"}


def test_with_a_context_directory_only_what_lies_elsewhere_is_listed(kernel: Kernel, tmp_path: Path) -> None:
    context = tmp_path / "context"
    context.mkdir()
    (context / "inside.py").write_text("")
    (kernel.folder / "near.py").write_text("")
    kernel.run(f"import sys; sys.path.insert(0, {str(context)!r})", silent=True)
    kernel.cells("import inside, near", f"fit(inside, near, context_dir={str(context)!r})")
    assert [target for _, target, _, _ in kernel.found().files] == ["near.py"]


def test_a_module_edited_after_its_import(kernel: Kernel) -> None:
    module = kernel.folder / "edited.py"
    module.write_text("X = 1\n")
    kernel.run("import edited")
    after = module.stat().st_mtime + 100
    os.utime(module, (after, after))
    kernel.run("fit(edited)")
    assert any("edited.py was edited after the notebook imported it" in w for w in kernel.found().warnings)
    kernel.run("%load_ext autoreload\n%autoreload 2")
    kernel.run("fit(edited)")
    assert kernel.found().warnings == []
    kernel.run("%autoreload 0")


def test_a_cloud_key_in_a_cell_is_not_sent_and_not_shown(kernel: Kernel) -> None:
    key = "AKIA" + "IOSFODNN7EXAMPLE"
    kernel.cells("bucket = 'data'", f"session = dict(\n    key='{key}')", "fit(session)")
    found = kernel.found()
    assert "Cell [3], line 2: `key` holds a string that looks like a secret" in found.error
    assert "environment.environment_variables" in found.error
    assert key not in found.error


def test_a_key_in_a_cell_that_is_not_needed_does_not_matter(kernel: Kernel) -> None:
    kernel.cells("password = 'hunter2-but-longer'", "fit()")
    assert kernel.found().needs_none_of(2)


def test_a_secret_by_name_is_sent_only_when_asked_for(kernel: Kernel, replayed: Replayed) -> None:
    kernel.cells("api_key = 'abcdef123456'", "def call():\n    return api_key", "fit(call)")
    error = kernel.found().error
    assert "Cell [2], line 1: `api_key` holds a string that looks like a secret (by its name)" in error
    assert "abcdef" not in error
    kernel.run("fit(call, values=['api_key'])")
    found = kernel.found()
    assert found.needs_none_of(2)
    assert b"abcdef123456" in decoded(found, "api_key")


def test_a_secret_value_whose_source_is_gone_is_not_sent(kernel: Kernel) -> None:
    kernel.run("get_ipython().user_ns['login'] = {'user': 'me', 'password': 'hunter2xyz'}", silent=True)
    kernel.run("fit(login)")
    error = kernel.found().error
    assert "`login`, used by cell [2], holds what looks like a secret" in error
    assert "hunter2xyz" not in error


def test_secrets_read_from_the_environment_are_named(kernel: Kernel) -> None:
    kernel.cells("import os\nkey = os.environ.get('WANDB_API_KEY')", "fit(key)")
    row = kernel.found().row("WANDB_API_KEY")
    assert row.status == "not sent"
    assert "environment.environment_variables" in row.note


def test_a_call_inside_a_local_module(kernel: Kernel, replayed: Replayed) -> None:
    (kernel.folder / "loop.py").write_text("import det_stand_in\n\ndef train(x):\n    return det_stand_in.fit(x)\n")
    kernel.cells("import loop", "loop.train(1)", "loop.train(2)")
    found = kernel.found()
    assert found.program is not None
    assert found.program.call is not None
    assert (found.program.call.file, found.program.call.line, found.program.call.occurrence) == ("loop.py", 4, 1)
    replayed(found)


def test_everything_wrong_is_listed_at_once(kernel: Kernel) -> None:
    kernel.run("import threading; get_ipython().user_ns['lock'] = threading.Lock()", silent=True)
    kernel.run("# det-skip\nimport threading\nfiles = threading.Lock()")
    kernel.cells("def step():\n    return lock, lost", "fit(step, files)")
    error = kernel.found().error
    assert error.count("\n  - ") == 3
