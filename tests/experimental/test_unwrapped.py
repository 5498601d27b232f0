"""What goes past the context trains in the kernel: who asked for the cluster is told."""

import warnings
from pathlib import Path

import pytest

pytest.importorskip("tensorflow")
pytest.importorskip("torch")

from forked_programs import ForkedPrograms
from native_line import Line, loader_of, torch_generator, torch_is_warm  # noqa: F401 (autouse)

pytestmark = pytest.mark.slow

BEGIN = "import tensorflow as tf, det_native as det\ncontext = det.experimental.keras.init()\n"
BUILD = (
    "def build():\n"
    "    model = tf.keras.Sequential([tf.keras.Input((1,)), tf.keras.layers.Dense(1)])\n"
    "    model.compile('sgd', 'mse')\n    return model\n"
    "def fit(model):\n    model.fit(tf.ones((4, 1)), tf.ones((4, 1)), verbose=0)\n"
)
TOLD = "net was trained in this process, and nothing was submitted"


def output_of(programs: ForkedPrograms, script: Path, code: str, home: Path) -> str:
    script.write_text(code)
    variables = {"HOME": str(home), "DET_HOME": str(home)}
    [ended], [output] = programs.run(home, [[str(script)]], variables, within=home)
    assert ended == 0, output
    return output


def in_cells(*cells: str) -> str:
    """Return a script that runs the cells in a shell, and writes a line into stderr after each."""
    return (
        "import sys\nfrom IPython.core.interactiveshell import InteractiveShell\n"
        "shell = InteractiveShell.instance()\n"
        f"for number, cell in enumerate({cells!r}, 1):\n"
        "    shell.run_cell(cell, store_history=True).raise_error()\n"
        "    print(f'-- after {number}', file=sys.stderr)\n"
    )


def test_a_script_that_trained_without_wrapping_is_told_at_its_end(
    tmp_path: Path, tensorflow_programs: ForkedPrograms
) -> None:
    output = output_of(
        tensorflow_programs, tmp_path / "train.py", BEGIN + BUILD + "net = build()\nfit(net)\n", tmp_path
    )
    assert output.count(TOLD) == 1
    assert "net = context.wrap_model(net)" in output


@pytest.mark.long
def test_a_notebook_is_told_after_the_cell_that_trained_and_once(
    tmp_path: Path, tensorflow_programs: ForkedPrograms
) -> None:
    cells = (BUILD.replace("def build", "import tensorflow as tf\ndef build", 1) + "old = build()\nfit(old)", BEGIN)
    code = in_cells(
        *cells, "net = build()", "net.evaluate(tf.ones((4, 1)), tf.ones((4, 1)), verbose=0)", "fit(net)", "fit(net)"
    )
    output = output_of(tensorflow_programs, tmp_path / "cells.py", code, tmp_path)
    assert output.count("was trained in this process") == 1
    assert "-- after 4" in output.partition(TOLD)[0]
    assert "-- after 5" in output.partition(TOLD)[2]


@pytest.mark.long
def test_beside_a_wrapped_model_another_may_train_here(tmp_path: Path, tensorflow_programs: ForkedPrograms) -> None:
    code = in_cells(BEGIN + BUILD, "main = context.wrap_model(build())", "features = build()\nfit(features)")
    assert "was trained" not in output_of(tensorflow_programs, tmp_path / "cells.py", code, tmp_path)


def test_a_torch_loop_past_the_context_is_told_at_its_first_step() -> None:
    line = Line(local=False)
    first, second, _ = loader_of()
    with pytest.warns(UserWarning, match=r"SGD\.step\(\) trains in this process, .*context\.epochs\("):
        line.step(first)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        line.loss(second).backward()
        line.optimizer.step()
        Line(local=True).step(first)
