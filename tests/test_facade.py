"""``import det_native``: cheap, lazy, and one sentence for a framework that is not installed."""

import subprocess
import sys
import textwrap
from importlib.util import find_spec
from pathlib import Path

import pytest

import det_native as det
from det_native.errors import UnsupportedFeatureError


def run_python(code: str) -> str:
    """Run code in a fresh interpreter and return what it prints."""
    finished = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=120, check=False
    )
    assert finished.returncode == 0, finished.stderr
    return finished.stdout


BLOCK = """
import sys
from importlib.abc import MetaPathFinder

class Blocked(MetaPathFinder):
    def find_spec(self, fullname, path, target=None):
        if fullname.partition(".")[0] in {"tensorflow", "torch"}:
            raise ModuleNotFoundError(f"No module named {fullname!r}", name=fullname)
        return None

sys.meta_path.insert(0, Blocked())
"""


def test_import_loads_the_standard_library_only() -> None:
    loaded = run_python(
        """
        import sys
        before = set(sys.modules)
        import det_native
        print(*sorted(set(sys.modules) - before))
        """
    ).split()
    foreign = {name.partition(".")[0] for name in loaded} - set(sys.stdlib_module_names) - {"det_native"}
    assert foreign == set()
    assert [name for name in loaded if name.startswith("det_native")] == ["det_native"]


def test_import_costs_little_over_a_bare_interpreter() -> None:
    times = [
        int(run_python("import time; t = time.process_time_ns(); import det_native; print(time.process_time_ns() - t)"))
        for _ in range(3)
    ]
    assert min(times) < 100e6


def test_every_public_name_is_listed_and_names_are_cached() -> None:
    assert set(det.__all__) <= set(dir(det))
    assert det.Constant(3) == {"type": "const", "val": 3}
    assert "Constant" in vars(det)


def test_unknown_name_is_an_attribute_error_that_lists_what_is_there() -> None:
    with pytest.raises(AttributeError, match=r"'nonsense'.*experimental"):
        det.nonsense  # noqa: B018 (the access is the test)


def test_missing_framework_is_one_sentence_with_the_command_to_run() -> None:
    printed = run_python(
        BLOCK
        + """
import det_native as det

for room, extra in (("keras", "keras"), ("pytorch", "torch")):
    for statement in (
        f"det.{room}", f"from det_native import {room}", f"det.experimental.{room}.init(local=True)"
    ):
        try:
            exec(statement)
        except ImportError as error:
            print(extra, type(error).__name__, error)
"""
    ).splitlines()
    for extra in ("keras", "torch"):
        by_name, by_import, by_init = (line for line in printed if line.startswith(f"{extra} "))
        assert by_name == by_import
        for line in (by_name, by_init):
            assert line.startswith(f"{extra} MissingDependencyError")
            assert f'pip install "det-native[{extra}]"' in line


def test_rooms_of_later_versions_say_so() -> None:
    with pytest.raises(UnsupportedFeatureError, match="TensorboardManager comes with a later version"):
        getattr(det.tensorboard, "TensorboardManager")  # noqa: B009 (mypy knows that it is not there)
    assert not hasattr(det.tensorboard, "something_else")


def test_a_later_name_is_an_import_error_too() -> None:
    with pytest.raises(ImportError, match="later version"):
        from det_native.tensorboard import TensorboardManager  # noqa: F401 (the import is the test)


@pytest.mark.skipif(find_spec("torch") is None, reason="PyTorch is not installed here")
def test_a_script_loads_what_it_needs_without_a_full_collection_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither the half second that full collections took, nor the capture of cells, nor what only GPUs need."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))  # torch makes a folder there
    full, after_optimizers, *loaded = run_python(
        """
        import gc
        import sys
        import torch
        import det_native as det
        from det_native.imports import load_optimizers

        def full():
            return gc.get_stats()[2]["collections"]

        before = full()
        det.experimental.create  # loads it
        print(full() - before)
        import det_native.capture.call, det_native.experimental.local.calls
        import det_harness.frameworks.torch.controller
        loaded = sorted(sys.modules)
        before = full()
        load_optimizers()
        print(full() - before)
        print(*loaded)
        """
    ).split()
    assert (full, after_optimizers) == ("0", "0")
    assert {"det_native.capture.call", "det_harness.frameworks.torch.training"} <= set(loaded)
    unneeded = {"det_native.capture.cells", "det_native.capture.program", "det_native.capture.watch", "psutil"}
    assert not unneeded & set(loaded)


@pytest.mark.skipif(find_spec("torch") is None, reason="PyTorch is not installed here")
def test_a_loop_in_a_kernel_loads_few_modules_before_its_first_batch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in ("TMPDIR", "DET_HOME", "IPYTHONDIR"):
        monkeypatch.setenv(variable, str(tmp_path))
    cells = (
        "import det_native as det",
        "context = det.experimental.pytorch.init(local=True, show='none')",
        "import torch\n"
        "model = context.wrap_model(torch.nn.Linear(2, 1))\n"
        "optimizer = context.wrap_optimizer(torch.optim.SGD(model.parameters(), lr=0.1))\n"
        "data = torch.utils.data.TensorDataset(torch.ones(8, 2), torch.ones(8, 1))\n"
        "for batch in context.train(torch.utils.data.DataLoader(data, batch_size=4), epochs=1):\n"
        "    loaded = [name for name in sys.modules if name.startswith(('det_native', 'det_harness'))]\n"
        "    print('loaded', *loaded, flush=True)\n"
        "    os._exit(0)",
    )
    code = f"""
        import os, sys
        from IPython.core.interactiveshell import InteractiveShell

        shell = InteractiveShell.instance(user_ns={{"os": os, "sys": sys}})
        for cell in {cells!r}:
            shell.run_cell(cell, store_history=True)
        """
    loaded = run_python(code).rpartition("loaded ")[2].split()
    assert "det_harness.frameworks.torch.loop" in loaded
    unneeded = {"det_native.schema.rest", "det_native.client.connect", "det_harness.frameworks.torch.trial_state"}
    assert not unneeded & set(loaded)
    assert len(loaded) <= 320


def test_init_of_no_framework_says_where_it_is() -> None:
    with pytest.raises(AttributeError, match=r"det\.experimental\.keras\.init\(\)"):
        _ = det.init  # type: ignore[attr-defined]
