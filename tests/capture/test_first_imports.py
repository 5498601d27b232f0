"""The first import of a library: its stream is noted there, and nobody who imports notices."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from jupyter_client.manager import start_new_kernel

_HEAD = "import json, sys\nfrom det_native.capture.first_imports import first_imports\ntold = []\n"


def fresh(code: str, folder: Path | None = None, head: str = _HEAD) -> Any:
    """Run code in a fresh process; return what its `answer` is."""
    code = f"{head}{code}\nprint('ANSWER' + json.dumps(answer))"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=folder, timeout=300)
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout.split("ANSWER")[1])


@pytest.mark.parametrize(
    ("module", "setup", "draw"),
    [
        ("numpy.random", "import numpy", "numpy.random.rand(3).tolist()"),
        pytest.param("torch", "import torch", "torch.rand(3).tolist()", marks=pytest.mark.slow),
    ],
)
def test_the_noted_state_leads_to_the_numbers_that_were_drawn(module: str, setup: str, draw: str) -> None:
    code = f"""
from det_native.process.streams import encoded, stream_of
before = stream_of({module!r})
first_imports.call_after({module!r}, lambda: told.append(stream_of({module!r})))
{setup}
drawn = {draw}
from det_harness.trial import rng
rng.apply_encoded(encoded(told[0]))
answer = [before, len(told), drawn, {draw}]"""
    before, times, drawn, again = fresh(code)
    assert before == {}
    assert times == 1
    assert drawn == again


@pytest.mark.long
@pytest.mark.slow
def test_a_state_waits_for_the_framework_that_the_program_imports() -> None:
    state = """
import torch
from det_native.process.streams import current_streams, encoded
sent = encoded(current_streams()).decode()
answer = [sent, torch.rand(3).tolist()]"""
    sent, drawn = fresh(state)
    code = f"""
from det_harness.trial import rng
early = 'torch' in sys.modules
rng.apply_encoded({sent!r}.encode())
import torch
answer = [early, torch.rand(3).tolist()]"""
    assert fresh(code) == [False, drawn]


_SHELL = """import json
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
def run(*cells):
    for cell in cells:
        shell.run_cell(cell, store_history=True).raise_error()
def noted():
    return [sorted(one.seen.streams or ()) for one in current_log().executions]
"""
_LOGGED = f"""{_SHELL}
run("import det_native")
from det_native.capture.log import current_log
"""


@pytest.mark.long
@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (["import numpy as np\nx = np.random.rand(3)"], [["numpy", "python"]]),
        (["import numpy as np", "x = np.random.rand(3)"], [[], ["numpy", "python"]]),
        (["import json", "import random\nrandom.random()"], [[], ["python"]]),
        (["import numpy as np\nnp.random.default_rng(1).random()"], [[]]),
    ],
)
def test_a_cell_has_the_states_of_what_it_imports_and_draws_from(cells: list[str], expected: list[list[str]]) -> None:
    assert fresh(f"{_LOGGED}\nrun(*{cells!r})\nanswer = noted()[1:]", head="") == expected


def test_a_draw_behind_det_native_in_the_cell_that_imports_both() -> None:
    code = f"""{_SHELL}
run("import numpy as np\\nnp.random.rand(3)\\nimport det_native\\nx = np.random.rand(3)")
from det_native.capture.log import current_log
from det_native.process.streams import encoded
from det_harness.trial import rng
import numpy as np
x = shell.user_ns["x"].tolist()
rng.apply_encoded(encoded(current_log().executions[0].seen.streams))
answer = x == np.random.rand(3).tolist()"""
    assert fresh(code, head="") is True


_NOTED = "first_imports.call_after('lib.part', lambda: told.append('part'))\n"


@pytest.fixture
def library(tmp_path: Path) -> Path:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "__init__.py").write_text("")
    (tmp_path / "lib" / "part.py").write_text('"""Its text."""\nvalue = [1]\n')
    (tmp_path / "lib" / "data.txt").write_text("data")
    return tmp_path


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        pytest.param("import lib.part\nanswer = [told, lib.part.value]", [["part"], [1]], id="import"),
        pytest.param("import lib\nfrom lib import part\nanswer = told", ["part"], id="from"),
        pytest.param("import lib\nanswer = told", [], id="another"),
        pytest.param(
            "import importlib, lib.part\nimportlib.reload(lib.part)\nanswer = [told, lib.part.value]",
            [["part"], [1]],
            id="reload",
        ),
        pytest.param(
            "from importlib.util import find_spec\nspec = find_spec('lib.part')\n"
            "answer = [told, spec.name, spec.loader.get_source('lib.part').count('value'), 'lib.part' in sys.modules]",
            [[], "lib.part", 1, False],
            id="find_spec",
        ),
        pytest.param(
            "import importlib.util as u\nspec = u.find_spec('lib.part')\nmodule = u.module_from_spec(spec)\n"
            "spec.loader.exec_module(module)\nanswer = [told, module.value]",
            [["part"], [1]],
            id="by hand",
        ),
        pytest.param(
            "import importlib.util as u\nspec = u.find_spec('lib.part')\nspec.loader = u.LazyLoader(spec.loader)\n"
            "module = u.module_from_spec(spec)\nsys.modules['lib.part'] = module\nspec.loader.exec_module(module)\n"
            "early = list(told)\nanswer = [early, module.value, told]",
            [[], [1], ["part"]],
            id="lazy",
        ),
        pytest.param(
            "import inspect, pkgutil, lib.part as part\nloader = type(part.__loader__).__name__\n"
            "answer = [loader, part.__spec__.loader is part.__loader__, 'value' in inspect.getsource(part),\n"
            "    pkgutil.get_data('lib.part', 'data.txt').decode()]",
            ["SourceFileLoader", True, True, "data"],
            id="its loader",
        ),
        pytest.param(
            "import det_native.compat, determined\nimport lib.part\nimport det_native\n"
            "answer = [told, determined is det_native]",
            [["part"], True],
            id="beside the alias",
        ),
        pytest.param(
            "first_imports.call_after('lib.part', lambda: 1 / 0)\n"
            "first_imports.call_after('lib.part', lambda: told.append('second'))\nimport lib.part\nanswer = told",
            ["part", "second"],
            id="an error of what is called",
        ),
        pytest.param(
            "import lib.part\nfirst_imports.call_after('lib.part', lambda: told.append('late'))\n"
            "import lib.part\nanswer = told",
            ["part"],
            id="loaded already",
        ),
        pytest.param(
            "try:\n    import nowhere\nexcept ModuleNotFoundError as error:\n    answer = [str(error), told]",
            ["No module named 'nowhere'", []],
            id="not there",
        ),
    ],
)
def test_imports_go_on_as_without_it(code: str, expected: Any, library: Path) -> None:
    waiting = _NOTED + "first_imports.call_after('nowhere', lambda: told.append('nowhere'))\n"
    assert fresh(waiting + code, library) == expected


def test_a_library_that_fails_is_told_of_when_it_succeeds(library: Path) -> None:
    part = library / "lib" / "part.py"
    code = f"""{_NOTED}
from pathlib import Path
Path({str(part)!r}).write_text("raise ImportError('a wheel is missing')")
try:
    import lib.part
except ImportError as error:
    failed = [str(error), list(told)]
Path({str(part)!r}).write_text("value = [2, 2]")
import importlib; importlib.invalidate_caches()
import lib.part
answer = [failed, told, lib.part.value]"""
    assert fresh(code, library) == [["a wheel is missing", []], ["part"], [2, 2]]


def test_a_lazy_library_is_not_loaded_by_looking_at_streams() -> None:
    if find_spec("torch") is None:
        pytest.skip("PyTorch is not installed")
    code = """
import importlib.util as u
spec = u.find_spec('torch')
spec.loader = u.LazyLoader(spec.loader)
module = u.module_from_spec(spec)
sys.modules['torch'] = module
spec.loader.exec_module(module)
from det_native.process.streams import current_streams
answer = [sorted(current_streams()), 'torch._C' in sys.modules]"""
    assert fresh(code) == [["python"], False]


def test_other_imports_cost_nothing_that_can_be_measured() -> None:
    code = """
import timeit
first_imports.call_after('nowhere', print)
loop = min(timeit.repeat(lambda: None, number=10_000, repeat=20))
asked = min(timeit.repeat(lambda: first_imports.find_spec('lib', None), number=10_000, repeat=20))
answer = (asked - loop) / 10_000"""
    assert fresh(code) < 5e-6  # an import of an empty module takes 100 times as long


def test_what_the_import_of_a_framework_draws_is_not_the_cells(tmp_path: Path) -> None:
    draws = "import random\nrandom.random()\n"
    code = (
        "import random\nfrom types import SimpleNamespace\nfrom det_native.capture.first_imports import first_imports\n"
        "from det_native.capture.first_imports import ImportDraws\n"
        "from det_native.process.streams import current_streams\n"
        "execution = SimpleNamespace(streams=current_streams())\n"
        "drawn = ImportDraws(lambda: execution)\nfirst_imports.call_around('lib', drawn.begin, drawn.end)\n"
        "{before}import lib\nprint(execution.streams['python'] == current_streams()['python'])"
    )
    (tmp_path / "lib.py").write_text(draws)
    for before, expected in (("", "True"), ("random.random()\n", "False")):
        run = subprocess.run(
            [sys.executable, "-c", code.format(before=before)],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])},
        )
        assert run.stdout.strip() == expected


def test_the_time_of_imports_is_that_of_the_outermost_ones_and_of_this_thread_alone(tmp_path: Path) -> None:
    (tmp_path / "inner.py").write_text("import sys\nsys.clock += 1")
    (tmp_path / "outer.py").write_text("import inner, sys\nsys.clock += 2")
    (tmp_path / "beside.py").write_text("import sys\nsys.clock += 10")
    (tmp_path / "broken.py").write_text("import sys\nsys.clock += 4\nraise ValueError")
    code = """
import importlib, threading, types
import det_native.capture.first_imports as measuring
sys.clock = 0
measuring.time = types.SimpleNamespace(perf_counter=lambda: sys.clock)
first_imports.measure()
import outer
import outer, inner
answer = [first_imports.seconds]
beside = threading.Thread(target=importlib.import_module, args=['beside'])
beside.start()
beside.join()
try:
    import broken
except ValueError:
    pass
answer.append(first_imports.seconds)"""
    assert fresh(code, tmp_path, f"import sys\nsys.path.insert(0, {str(tmp_path)!r})\n{_HEAD}") == [3, 7]


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize(("above", "counts"), [("import slow_library", True), ("open('x', 'w')", False)])
def test_what_the_first_cell_imports_above_det_native_counts_as_imports(
    tmp_path: Path, above: str, counts: bool
) -> None:
    (tmp_path / "slow_library.py").write_text("import time\ntime.sleep(2)")
    manager, client = start_new_kernel(cwd=str(tmp_path))
    try:
        cell = f"%config InlineBackend.close_figures = False\nimport slow_library\n{above}\nimport det_native"
        client.execute_interactive(cell, timeout=240)
        reply = client.execute_interactive(
            "from det_native.capture.log import current_log",
            user_expressions={"seconds": "current_log().executions[0].time.importing"},
            timeout=240,
        )
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
    seconds = float(reply["content"]["user_expressions"]["seconds"]["data"]["text/plain"])
    assert (seconds >= 2) is counts
