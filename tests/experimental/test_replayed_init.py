"""What ``keras.init()`` gives in a program that is replayed for a trial of one of its experiments."""

from __future__ import annotations

import hashlib
import platform
import sys
from pathlib import Path
from typing import Any

import pytest
from det_harness.program.null_handle import NullHandle
from det_harness.program.runner import ProgramRunner, ProgramStop

from det_native import PROTOCOL
from det_native.runtime import hosted
from det_native.schema.environment import TrialEnvironment
from det_native.schema.manifests import BundleManifest, CallSite, Cell, Interpreter, Program

pytest.importorskip("tensorflow")  # here, not in a test: it sets environment variables
pytestmark = pytest.mark.slow

FIRST = """import random
import numpy as np
import tensorflow as tf
import det_native as det
from det_native.experimental import keras
random.seed(1)
def train(config, name):
    context = keras.init(config)
    model = tf.keras.Sequential([tf.keras.layers.Dense(context.get_hparam(name), input_shape=(2,))])
    model = context.wrap_model(model)
    model.compile("sgd", "mse")
    sizes.append(context.get_hparam(name))
    return model.fit(np.zeros((8, 2)), np.zeros((8, context.get_hparam(name))), verbose=0)
sizes = []
handle = train({"hyperparameters": {"units": 3}, "min_checkpoint_period": {"epochs": 1}}, "units")
"""
SECOND = 'train({"hyperparameters": {"width": 4}}, "width")\n'


class Host:
    """Takes the recorded call without training."""

    role = "worker"
    environment = TrialEnvironment(config={"hyperparameters": {}}, hparams={"width": 5}, trial_seed=7)

    def __init__(self, runner: ProgramRunner) -> None:
        self.runner = runner
        self.taken: Any = None

    def take_call(self, kind: str, payload: Any) -> Any:
        if not self.runner.calls.is_recorded(kind):
            return NullHandle(self.runner.calls.last_place)
        self.taken = payload
        raise ProgramStop

    def owns_init(self) -> bool:
        return self.runner.calls.is_recorded_init()

    def set_streams_of_init(self) -> None:
        self.runner.calls.at_init()


def test_an_earlier_experiment_with_other_hyperparameters_gets_its_own(tmp_path: Path) -> None:
    lines = FIRST.splitlines()
    line = 1 + next(i for i, text in enumerate(lines) if "model.fit" in text)
    call = CallSite(kind="fit", cell=0, line=line, column=11, running=1, running_line=1)
    init = CallSite(kind="init", cell=0, line=8, column=14, running=1, running_line=1)
    cells = tuple(Cell(number=n, cell_id=None, source=source) for n, source in ((1, FIRST), (2, SECOND)))
    bundle = BundleManifest(
        protocol=PROTOCOL,
        interpreter=Interpreter(python=platform.python_version(), executable=sys.executable),
        program=Program(kind="cells", framework="keras", cells=cells, call=call, init=init),
    )
    runner = ProgramRunner(bundle, lambda sha256: hashlib.sha256(sha256.encode()).digest(), tmp_path)
    host = Host(runner)
    with hosted(host):
        runner.run()
    assert runner.module.sizes == [3, 5]
    assert isinstance(runner.module.handle, NullHandle)
    assert host.taken.context.env is host.environment
