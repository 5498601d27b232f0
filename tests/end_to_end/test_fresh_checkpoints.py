"""Checkpoints in a process that has not trained: noted, loaded from anywhere, exported with the same outputs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from recording import recording_master

from det_native.schema.home import Home

pytestmark = [pytest.mark.slow, pytest.mark.long]

TORCH = """
import torch
import det_native as det
from det_native.pytorch import DataLoader, PyTorchTrial

class Line(PyTorchTrial):
    def __init__(self, context):
        self.context = context
        layers = torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2)
        self.model = context.wrap_model(torch.nn.Sequential(*layers))
        self.optimizer = context.wrap_optimizer(torch.optim.SGD(self.model.parameters(), lr=0.1))

    def loader(self):
        x = torch.randn(32, 3, generator=torch.Generator().manual_seed(1))
        return DataLoader(torch.utils.data.TensorDataset(x, x[:, :2] * 2), batch_size=8)

    build_training_data_loader = build_validation_data_loader = loader

    def train_batch(self, batch, epoch_idx, batch_idx):
        loss = torch.nn.functional.mse_loss(self.model(batch[0]), batch[1])
        self.context.backward(loss)
        self.context.step_optimizer(self.optimizer)
        return {"loss": loss}

    def evaluate_batch(self, batch):
        return {"error": torch.nn.functional.mse_loss(self.model(batch[0]), batch[1]).item()}

config = {
    "searcher": {"name": "single", "metric": "error", "max_length": {"batches": 8}},
    "hyperparameters": {"global_batch_size": 8},
    "min_validation_period": {"batches": 4},
    "min_checkpoint_period": {"batches": 4},
    "checkpoint_storage": {"save_trial_latest": 9},
}
experiment = det.experimental.create(Line, config, local=True)
experiment.wait()
"""
KERAS = """
import numpy as np
import tensorflow as tf
import det_native as det

context = det.experimental.keras.init(
    {"searcher": {"metric": "val_loss"}, "hyperparameters": {"global_batch_size": 8}}, local=True
)
model = tf.keras.Sequential([tf.keras.layers.Dense(4, activation="relu", input_shape=(3,)), tf.keras.layers.Dense(2)])
model = context.wrap_model(model)
model.compile(loss="mse", optimizer="sgd")
x = np.random.default_rng(1).normal(size=(32, 3)).astype("float32")
model.fit(x, x[:, :2] * 2, batch_size=8, epochs=2, validation_data=(x, x[:, :2] * 2), verbose=0)
context.experiment.wait()
"""


class Scripts:
    """Scripts in processes of their own, all with the same home."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environment = {
            **os.environ,
            "DET_HOME": str(folder / "home"),
            "DET_RECORD": "on",
            "TF_CPP_MIN_LOG_LEVEL": "3",
        }

    def run(self, source: str) -> Any:
        """Run a script; return what its last line of output is, as JSON, if it is."""
        (self.folder / "script.py").write_text(textwrap.dedent(source))
        ended = subprocess.run(
            [sys.executable, "script.py"],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert ended.returncode == 0, ended.stderr[-4000:]
        last = (ended.stdout.strip().splitlines() or ["null"])[-1]
        return json.loads(last) if last[:1] in '[{"n0123456789tf' else None


@pytest.fixture(scope="module")
def torch_scripts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scripts]:
    scripts = Scripts(tmp_path_factory.mktemp("torch"))
    with recording_master(Home(scripts.folder / "home")):
        scripts.run(TORCH)
        yield scripts


@pytest.fixture(scope="module")
def keras_scripts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scripts]:
    scripts = Scripts(tmp_path_factory.mktemp("keras"))
    with recording_master(Home(scripts.folder / "home")):
        scripts.run(KERAS)
        yield scripts


def test_a_checkpoint_of_pytorch_in_a_fresh_process(torch_scripts: Scripts) -> None:
    found = torch_scripts.run("""
        import json, torch
        import det_native as det
        experiment = det.experiment(1)
        best = experiment.select_checkpoint(best=True)
        x = torch.ones(1, 3)
        expected = best.load().model(x)
        best.verify()
        best.add_metadata({"seen": 1})
        best.pin()
        again = det.experiment(1).trials[0].select_checkpoint(uuid=best.uuid)
        folder = best.download("down")
        other = det.experimental.Checkpoint.load_from_path(folder, map_location=torch.device("cpu"))
        assert torch.equal(other.model(x), expected)
        assert torch.equal(best.load("down", map_location={"cpu": "cpu"}).model(x), expected)
        errors = []
        def refused(step):
            try:
                step()
            except Exception as error:
                errors.append(str(error))
            else:
                errors.append("")
        refused(lambda: best.load(map_location="nowhere"))
        refused(lambda: best.load(tags=["serve"]))
        refused(again.delete)
        again.unpin()
        first = experiment.checkpoints[0]
        first.delete()
        print(json.dumps({
            "metadata": again.metadata, "id": again.experiment_id, "format": again.format, "errors": errors,
            "left": len(det.experiment(1).checkpoints), "pinned": again.pinned,
            "value": again.validation["metrics"]["validationMetrics"]["error"], "metrics": again.metrics["error"],
        }))
        """)
    assert found["metadata"] == {"seen": 1}
    assert (found["id"], found["format"], found["left"], found["pinned"]) == (1, "cloudpickle", 1, False)
    assert found["value"] == found["metrics"]
    nowhere, tags, pinned = found["errors"]
    assert "map_location='nowhere' is no device" in nowhere
    assert "tags= is for SavedModels" in tags
    assert "it is pinned; unpin it first" in pinned


def test_a_model_of_pytorch_is_exported_with_the_same_outputs(torch_scripts: Scripts) -> None:
    found = torch_scripts.run("""
        import json, torch
        import det_native as det
        best = det.experiment(1).top_checkpoint()
        x = torch.randn(5, 3, generator=torch.Generator().manual_seed(7))
        model = best.load().model
        expected = model(x)
        scripted = torch.jit.load(best.export("scripted.pt", "torchscript"))
        traced = torch.jit.load(best.export("traced.pt", "torchscript", example_inputs=x))
        program = torch.export.load(best.export("program.pt2", "torch.export", example_inputs=(x,))).module()
        from safetensors.torch import load_file
        weights = load_file(best.export("deep/weights.safetensors", "safetensors"))
        fresh = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2))
        fresh.load_state_dict(weights)
        same = [torch.equal(each(x), expected) for each in (scripted, traced, fresh)]
        same.append(torch.allclose(program(x), expected, atol=1e-6))
        errors = []
        for format, more in (("torch.export", {}), ("onnx", {}), ("savedmodel", {})):
            try:
                best.export("x", format, **more)
            except det.errors.ArgumentError as error:
                errors.append(str(error))
        try:
            import onnx.reference
            best.export("model.onnx", "onnx", example_inputs=x)
            evaluated = onnx.reference.ReferenceEvaluator("model.onnx")
            values = evaluated.run(None, {evaluated.input_names[0]: x.numpy()})[0]
            onnx_said = bool(torch.allclose(torch.tensor(values), expected, atol=1e-5))
        except (ImportError, AttributeError):  # beside TensorFlow 2.15
            try:
                best.export("model.onnx", "onnx", example_inputs=x)
            except det.errors.MissingDependencyError as error:
                onnx_said = str(error)
        print(json.dumps({"same": same, "errors": errors, "onnx": onnx_said}))
        """)
    assert found["same"] == [True] * 4
    assert found["onnx"] is True or "pip install onnx onnxscript" in found["onnx"]
    program, onnx, savedmodel = found["errors"]
    assert "needs example_inputs=, one batch" in program
    assert "needs example_inputs=, one batch" in onnx
    assert "a checkpoint of torch can be exported as 'torchscript', 'torch.export', 'safetensors', 'onnx'" in savedmodel


def test_a_checkpoint_of_keras_in_a_fresh_process(keras_scripts: Scripts) -> None:
    found = keras_scripts.run("""
        import json, numpy as np
        import tensorflow as tf
        import det_native as det
        best = det.experiment(1).select_checkpoint(latest=True)
        x = np.ones((5, 3), "float32")
        model = best.load()
        expected = model.predict(x, verbose=0)
        folder = best.download("down")
        same = [np.array_equal(det.experimental.Checkpoint.load_from_path(folder).predict(x, verbose=0), expected)]
        kept = tf.keras.models.load_model(best.export("model.keras", "keras"))
        same.append(np.array_equal(kept.predict(x, verbose=0), expected))
        saved = tf.saved_model.load(str(best.export("saved", "savedmodel")))
        output = saved.signatures["serving_default"](tf.constant(x)) if saved.signatures else saved.serve(x)
        values = next(iter(output.values())) if isinstance(output, dict) else output
        same.append(np.allclose(values.numpy(), expected, atol=1e-6))
        from safetensors.numpy import load_file
        weights = load_file(best.export("w.safetensors", "safetensors"))
        wanted = sorted(w.numpy().tobytes() for w in model.weights)
        same.append(sorted(w.tobytes() for w in weights.values()) == wanted)
        best.verify()
        best.add_metadata({"by": "keras"})
        errors = []
        for step in (lambda: best.export("x", "torchscript"), lambda: best.load(map_location="cpu"),
                     lambda: best.export("x", "onnx")):
            try:
                step()
            except det.errors.DetError as error:
                errors.append(str(error))
        print(json.dumps({"same": [bool(s) for s in same], "errors": errors, "format": best.format,
                          "again": det.experiment(1).checkpoints[-1].metadata}))
        """)
    assert found["same"] == [True] * 4
    assert found["again"] == {"by": "keras"}
    assert found["format"] == "saved_weights"
    torchscript, moved, onnx = found["errors"]
    assert "a checkpoint of keras can be exported as 'savedmodel', 'keras', 'safetensors', 'onnx'" in torchscript
    assert "map_location= is for PyTorch" in moved
    assert "pip install tf2onnx" in onnx
