"""The master's own source: it opens no pickle, evaluates no text, and imports nothing of a user's."""

from __future__ import annotations

import ast
from pathlib import Path

import det_native

ROOT = Path(det_native.__file__).parent
#: All that a master's process imports of ours, but for what only clients and workers use.
ROOMS = ("master", "storage", "schema")
MODULES = {
    *("pickle", "_pickle", "cloudpickle", "dill", "marshal", "shelve", "runpy", "code", "codeop", "imp", "joblib"),
    *("torch", "tensorflow", "keras", "numpy", "pandas", "h5py", "safetensors"),
}
CALLS = {"eval", "exec", "compile", "__import__", "execfile"}
METHODS = {
    *("yaml.load", "yaml.load_all", "yaml.full_load", "yaml.unsafe_load", "os.system", "os.popen", "tarfile.open"),
    *("shutil.unpack_archive", "zipfile.ZipFile", "importlib.import_module", "torch.load", "np.load", "numpy.load"),
}


LAST_NAMES = {name.rpartition(".")[2] for name in CALLS | METHODS}


def last_name(call: ast.Call) -> str:
    """Return the name that is called, without what it is an attribute of: to write that out takes ten times as long."""
    function = call.func
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def found_in(source: str) -> list[str]:
    """Return what a piece of source does that no master may."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names if alias.name.partition(".")[0] in MODULES]
        elif isinstance(node, ast.ImportFrom):
            found += [node.module] if (node.module or "").partition(".")[0] in MODULES else []
        elif isinstance(node, ast.Call):
            name = ast.unparse(node.func) if last_name(node) in LAST_NAMES else ""
            found += [name] if name in CALLS | METHODS else []
            found += ["shell=True" for keyword in node.keywords if keyword.arg == "shell"]
    return found


def test_the_rule_finds_what_it_is_for() -> None:
    source = (
        "import pickle\nfrom torch import load\neval('1')\nyaml.load(x)\nsubprocess.run('x', shell=True)\nre.compile(x)"
    )
    assert sorted(found_in(source)) == ["eval", "pickle", "shell=True", "torch", "yaml.load"]


def test_the_master_opens_no_pickle_and_evaluates_nothing() -> None:
    files = [file for room in ROOMS for file in sorted((ROOT / room).rglob("*.py"))]
    assert len(files) > 100
    found = {file.relative_to(ROOT).as_posix(): found_in(file.read_text(encoding="utf-8")) for file in files}
    assert {name: calls for name, calls in found.items() if calls} == {}


LOADING = ("load_model", "model_from_json", "model_from_config", "enable_unsafe_deserialization")


def loading_of_code(source: str) -> list[str]:
    """Return the calls in a piece of source that run what a file of weights says."""
    found: list[str] = []
    if not any(f"{name}(" in source for name in ("load", *LOADING)):
        return found
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call) or last_name(node) not in ("load", *LOADING):
            continue
        name = ast.unparse(node.func)
        given = {keyword.arg: ast.unparse(keyword.value) for keyword in node.keywords}
        if name == "torch.load" and given.get("weights_only") != "True":
            found.append(name)
        if name in ("np.load", "numpy.load") and given.get("allow_pickle", "False") != "False":
            found.append(name)
        if name.rpartition(".")[2] in LOADING:
            found.append(name)
    return found


def test_weights_are_loaded_without_code() -> None:
    assert loading_of_code(
        "torch.load(x, weights_only=False)\nkeras.models.load_model(y)\nnp.load(z, allow_pickle=True)"
    )
    files = [*ROOT.rglob("*.py"), *(ROOT.parent / "harness" / "det_harness").rglob("*.py")]
    assert len(files) > 500
    found = {file.name: loading_of_code(file.read_text(encoding="utf-8")) for file in files}
    # A file that the same lines have just written is read once, to see whether that can be done.
    assert {name: calls for name, calls in found.items() if calls} == {
        "model_file.py": ["tf.keras.models.load_model"],
        "determined_callback.py": ["self.load_model"],  # its own method, which reads weights
    }
