"""The button "Leave it running" of a live view reaches a kernel whose cell waits."""

from __future__ import annotations

import re

import pytest
from faults import Cluster, Gate, Kernel
from torch_program import FIT

pytestmark = pytest.mark.slow

#: Somebody looks at the notebook, by a front end that can show widgets.
WATCHED = "import os\nos.environ['JPY_SESSION_NAME'] = 'watched.ipynb'"


def test_the_button_ends_the_waiting_and_not_the_training(kernel: Kernel, gate: Gate) -> None:
    kernel.run(WATCHED)
    kernel.run(f"context, model, optimizer, train_batch = begin({gate.port})\nran = 0")
    waiting = kernel.begin(f"{FIT.format('')}\nran = 1")
    kernel.press_leave(waiting)
    visitor = gate.next()
    error = kernel.finish(waiting, fails=True).error
    assert "goes on. det.last_experiment().wait() waits for its end and brings its result." in error
    assert kernel.value("[ran, context.experiment.state]") == [0, "Running"]
    waiting = kernel.begin("det.last_experiment().wait()")
    visitor.go()
    kernel.finish(waiting)
    assert kernel.value("context.experiment.state") == "Completed"


def test_stop_brings_home_what_there_is(
    kernel: Kernel, cluster: Cluster, gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DET_HOME", str(cluster.home.path))
    kernel.run(f"context, model, optimizer, train_batch = begin({gate.port})\nbefore = loss_here()")
    waiting = kernel.begin(f"{FIT.format('')}\nran = 1")
    visitor = gate.next()
    cluster.attach(max(cluster.running())).stop()
    visitor.go()
    text = kernel.finish(waiting).text
    assert re.search(r"was stopped at batch \d+: what it had trained by then is here\.", text), text
    assert kernel.value("[ran, before > loss_here(), context.experiment.state]") == [1, True, "Stopped"]
