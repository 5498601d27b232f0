"""``TorchWriter``: event files in the trial's folder, complete at every checkpoint, closed at the end."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path
from typing import Any

import pytest
from det_harness.frameworks.torch.controller import PyTorchTrialController
from digits_trials import DigitsTrial, config
from rows_reporter import train_here

from det_native import tensorboard
from det_native.errors import MissingDependencyError
from det_native.pytorch import PyTorchCallback
from det_native.tensorboard.metric_writers.pytorch import TorchWriter

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", autouse=True)
def tensorboard_is_loaded() -> None:
    """Import what the first writer imports, before any test is watched."""
    with tempfile.TemporaryDirectory() as folder, tensorboard.place.writing_to(Path(folder)):
        TorchWriter()


class MyModel(DigitsTrial):
    """The example of the documents."""

    def __init__(self, context: Any) -> None:
        super().__init__(context)
        self.logger = TorchWriter()

    def train_batch(self, batch: Any, epoch_idx: int, batch_idx: int) -> dict[str, Any]:
        self.logger.writer.add_scalar("my_metric", batch_idx * 2, batch_idx)
        self.logger.add_scalar("other", 1.0, batch_idx)
        return super().train_batch(batch, epoch_idx, batch_idx)


def scalars(folder: Path, name: str) -> list[tuple[int, float]]:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    found = EventAccumulator(str(folder)).Reload()
    return [(event.step, event.value) for event in found.Scalars(name)]


def train(folder: Path, trial_class: type[DigitsTrial], batches: int) -> None:
    train_here(
        lambda services: PyTorchTrialController(trial_class, services),
        config=config(batches=batches),
        hparams={"global_batch_size": 64},
        trial_seed=1,
        directory=folder / "files",
        framework="torch",
    )


def test_event_files_are_kept_with_the_trial(tmp_path: Path) -> None:
    before = tensorboard.get_base_path()
    train(tmp_path, MyModel, 5)
    assert scalars(tmp_path / "tensorboard", "my_metric") == [(step, step * 2.0) for step in range(5)]
    assert len(scalars(tmp_path / "tensorboard", "other")) == 5
    assert tensorboard.get_base_path({}) == before == Path(tempfile.gettempdir()) / "tensorboard"


def test_they_are_complete_at_every_checkpoint(tmp_path: Path) -> None:
    seen: list[int] = []

    class Reads(MyModel):
        def build_callbacks(self) -> dict[str, PyTorchCallback]:
            class Reader(PyTorchCallback):
                def on_checkpoint_end(self, checkpoint_dir: str) -> None:
                    seen.append(len(scalars(tmp_path / "tensorboard", "my_metric")))

            return {"reader": Reader()}

    train(tmp_path, Reads, 7)
    assert seen == [7]


def test_a_trial_without_a_writer_has_no_folder(tmp_path: Path) -> None:
    train(tmp_path, DigitsTrial, 1)
    assert [path.name for path in tmp_path.iterdir()] == ["files"]


def test_tensorflow_is_not_imported_for_it(tmp_path: Path) -> None:
    code = f"""
        import sys
        import det_native.compat
        from determined.tensorboard.metric_writers.pytorch import TorchWriter
        from det_native.tensorboard import place
        from pathlib import Path
        with place.writing_to(Path({str(tmp_path)!r})):
            TorchWriter().add_scalar("a", 1.0, 1)
        assert "tensorflow" not in sys.modules
    """
    finished = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=120, check=False
    )
    assert finished.returncode == 0, finished.stderr
    assert scalars(tmp_path, "a") == [(1, 1.0)]


def test_without_tensorboard_one_sentence_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("torch.utils.tensorboard")]:
        monkeypatch.delitem(sys.modules, name)
    for name in [name for name in sys.modules if name.partition(".")[0] == "tensorboard"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "tensorboard", None)
    with pytest.raises(MissingDependencyError, match="pip install tensorboard"):
        TorchWriter()
