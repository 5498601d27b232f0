"""``create(..., local=True)``: real training of a PyTorchTrial in this process."""

import importlib
import os
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import det_native as det  # noqa: E402 (after the check for torch)
from det_native.errors import (  # noqa: E402
    ArgumentError,
    CheckpointError,
    NotRecordedError,
    TrialDefinitionError,
    UnsupportedFeatureError,
    UserCodeError,
)
from det_native.pytorch import DataLoader, PyTorchTrial, PyTorchTrialContext  # noqa: E402
from det_native.schema.states import ExperimentState  # noqa: E402

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("recorded")]

CONFIG: dict[str, Any] = {
    "name": "line",
    "searcher": {"name": "single", "metric": "error", "max_length": {"epochs": 2}},
    "records_per_epoch": 16,
    "hyperparameters": {"global_batch_size": 4, "lr": 0.05},
    "min_validation_period": {"epochs": 1},
    "reproducibility": {"experiment_seed": 5},
}


@pytest.fixture(scope="module", autouse=True)
def torch_is_warm() -> None:
    """Import what the first optimizer imports: it makes a cache folder and a variable for the whole process."""
    importlib.import_module("torch._dynamo")


class LineTrial(PyTorchTrial):
    """Fits a line."""

    def __init__(self, context: PyTorchTrialContext) -> None:
        self.context = context
        self.model = context.wrap_model(torch.nn.Linear(1, 1))
        optimizer = torch.optim.SGD(self.model.parameters(), lr=context.get_hparam("lr"))
        self.optimizer = context.wrap_optimizer(optimizer)

    def _data(self) -> Any:
        x = torch.linspace(-1, 1, 16).reshape(-1, 1)
        return torch.utils.data.TensorDataset(x, 2 * x + 1)

    def build_training_data_loader(self) -> DataLoader:
        return DataLoader(self._data(), batch_size=self.context.get_per_slot_batch_size())

    def build_validation_data_loader(self) -> DataLoader:
        return DataLoader(self._data(), batch_size=self.context.get_per_slot_batch_size())

    def train_batch(self, batch: Any, epoch_idx: int, batch_idx: int) -> dict[str, Any]:
        x, y = batch
        loss = torch.nn.functional.mse_loss(self.model(x), y)
        self.context.backward(loss)
        self.context.step_optimizer(self.optimizer)
        return {"loss": loss}

    def evaluate_batch(self, batch: Any) -> dict[str, Any]:
        x, y = batch
        return {"error": torch.nn.functional.mse_loss(self.model(x), y).item()}


class BrokenTrial(LineTrial):
    """Fails in its second batch."""

    def train_batch(self, batch: Any, epoch_idx: int, batch_idx: int) -> dict[str, Any]:
        if batch_idx == 1:
            raise ZeroDivisionError("batch 1")
        return super().train_batch(batch, epoch_idx, batch_idx)


def test_trains_to_the_end_and_returns_the_handle() -> None:
    experiment = det.experimental.create(LineTrial, CONFIG, local=True)
    assert experiment.state is ExperimentState.COMPLETED
    assert isinstance(experiment.id, int)
    (trial,) = experiment.trials
    assert [row["batch"] for row in trial.metrics("training")] == list(range(1, 9))
    assert [row["batch"] for row in trial.metrics("validation")] == [4, 8]
    history = experiment.history
    assert len(history["loss"]) == len(history["val_error"]) == 2
    assert history["val_error"][1] < history["val_error"][0]
    assert experiment.plot().axes
    assert det.attach(experiment.id).history == history


def test_best_checkpoint_loads_back_into_a_trial(tmp_path: Path) -> None:
    experiment = det.experimental.create(LineTrial, CONFIG, local=True)
    checkpoint = experiment.top_checkpoint()
    assert checkpoint.batch == 8
    loaded = checkpoint.load()
    assert isinstance(loaded, LineTrial)
    x = torch.linspace(-1, 1, 16).reshape(-1, 1)
    error = torch.nn.functional.mse_loss(loaded.model(x), 2 * x + 1).item()
    assert error == pytest.approx(checkpoint.metrics["error"], rel=1e-5)
    folder = checkpoint.download(tmp_path / "checkpoint")
    assert any(folder.iterdir())


def test_what_the_configuration_says_of_a_local_run_is_known_of_it_until_it_is_changed() -> None:
    said = {"labels": ["baseline", "line"], "description": "a line", "project": "/toys/lines/"}
    experiment = det.experimental.create(LineTrial, {**CONFIG, **said}, local=True)
    assert (experiment.labels, experiment.description) == (["baseline", "line"], "a line")
    assert experiment.project == "toys/lines"
    assert [one.id for one in det.experiments(label="baseline")] == [experiment.id]
    assert [one.id for one in det.experiments(project="toys/lines")] == [experiment.id]
    experiment.remove_labels("line")
    experiment.set_description("")
    experiment.move_to("")
    again = det.attach(experiment.id)
    assert (again.labels, again.description, again.project) == (["baseline"], "", "")


class WritingTrial(LineTrial):
    """Writes a log and its weights, as plain code does."""

    def train_batch(self, batch: Any, epoch_idx: int, batch_idx: int) -> dict[str, Any]:
        metrics = super().train_batch(batch, epoch_idx, batch_idx)
        with open("log.csv", "a") as log:
            log.write(f"{batch_idx}\n")
        torch.save(self.model.state_dict(), "best.pt")
        return metrics


class WritingAndBroken(WritingTrial):
    """Fails in its third batch."""

    def train_batch(self, batch: Any, epoch_idx: int, batch_idx: int) -> dict[str, Any]:
        if batch_idx == 2:
            raise ZeroDivisionError("batch 2")
        return super().train_batch(batch, epoch_idx, batch_idx)


def test_files_that_the_training_writes_are_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data.csv").touch()
    experiment = det.experimental.create(WritingTrial, CONFIG, local=True)
    assert experiment.artifacts.paths == ["best.pt", "log.csv"]
    assert experiment.artifacts["best.pt"].load()["weight"].shape == (1, 1)
    assert {file.batch for file in experiment.trials[0].artifacts} == {8}
    with pytest.raises(ZeroDivisionError):
        det.experimental.create(WritingAndBroken, CONFIG, local=True)
    assert det.last_experiment().artifacts.paths == ["best.pt", "log.csv"]


def test_same_seed_trains_the_same() -> None:
    first, second = (det.experimental.create(LineTrial, CONFIG, local=True) for _ in range(2))
    assert first.id != second.id
    assert first.history == second.history


def test_without_a_seed_one_is_drawn_and_kept() -> None:
    unseeded = {name: value for name, value in CONFIG.items() if name != "reproducibility"}
    first, second = (det.experimental.create(LineTrial, unseeded, local=True) for _ in range(2))
    seeds = [experiment.config["reproducibility"]["experiment_seed"] for experiment in (first, second)]
    assert seeds[0] != seeds[1]
    assert first.history != second.history
    again = det.experimental.create(
        LineTrial, {**unseeded, "reproducibility": {"experiment_seed": seeds[0]}}, local=True
    )
    assert again.history == first.history


def test_superfluous_checkpoints_are_deleted_at_the_end() -> None:
    config = CONFIG | {
        "searcher": {"name": "single", "metric": "error", "max_length": {"batches": 8}, "smaller_is_better": False},
        "min_validation_period": {"batches": 2},
        "min_checkpoint_period": {"batches": 2},
        "checkpoint_policy": "all",
        "checkpoint_storage": {"save_experiment_best": 0, "save_trial_best": 2, "save_trial_latest": 0},
    }
    experiment = det.experimental.create(LineTrial, config, local=True)
    best = [checkpoint.uuid for checkpoint in experiment.checkpoints]
    assert [checkpoint.batch for checkpoint in experiment.checkpoints] == [2, 4]
    files = Path(os.environ["DET_HOME"]) / "checkpoints"
    assert all((files / uuid).is_dir() for uuid in best)
    assert experiment.top_checkpoint().load().context.get_hparam("lr") == 0.05


def test_another_process_is_told_why_the_code_was_not_kept() -> None:
    experiment = det.experimental.create(LineTrial, CONFIG, local=True)  # by pytest, whose program is not the user's
    attached = det.attach(experiment.id)
    with pytest.raises(CheckpointError, match=r"could not be kept \(.+\)\. checkpoint\.download"):
        attached.top_checkpoint().load()
    with pytest.raises(UnsupportedFeatureError, match=r"could not be kept \("):
        attached.notebook("program.ipynb")


def test_work_without_slots_trains_here_with_what_the_process_has() -> None:
    with pytest.warns(UserWarning, match="resources.slots_per_trial .a local run has what its process sees"):
        experiment = det.experimental.create(LineTrial, CONFIG | {"resources": {"slots_per_trial": 0}}, local=True)
    assert experiment.state is ExperimentState.COMPLETED


class SpoiltTrial(LineTrial):
    """Its memory runs out."""

    def train_batch(self, batch: Any, epoch_idx: int, batch_idx: int) -> dict[str, Any]:
        raise MemoryError


def test_memory_that_ran_out_says_the_batch_size_here_too() -> None:
    with pytest.raises(MemoryError) as caught:
        det.experimental.create(SpoiltTrial, CONFIG, local=True)
    (advice,) = caught.value.__notes__
    assert advice.startswith("The batch size is 4 (global_batch_size): try a smaller one, such as 2.")


def test_mode_local_is_one_minimal_loop_and_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    experiment = det.experimental.create(LineTrial, CONFIG, "local")
    said = capsys.readouterr().out
    assert "local=True, test=True" in said
    assert [said.count(part) for part in ("trained on one batch", "validated:", "saved a checkpoint")] == [1, 1, 1]
    assert os.sep not in said.split("saved a checkpoint")[1].split("The quick check")[0]
    assert experiment.wait().state is ExperimentState.COMPLETED
    assert [row["batch"] for row in experiment.metrics()] == [1]
    assert experiment.history.keys() == {"loss", "val_error"}
    assert experiment.top_checkpoint().load().model.weight.shape == (1, 1)
    with pytest.raises(NotRecordedError, match="quick check"):
        assert experiment.id


def test_an_exception_of_the_users_code_arrives_as_it_is_and_is_kept(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ZeroDivisionError, match="batch 1") as raised:
        det.experimental.create(BrokenTrial, CONFIG, local=True)
    names = [entry.name for entry in raised.traceback if entry.name != "call"]
    assert names[1:] == ["create", "train_batch"]
    assert "det.last_experiment() has it" in capsys.readouterr().out
    kept = det.last_experiment()
    assert [row["batch"] for row in kept.trials[0].metrics("training")] == [1]
    assert kept.state is ExperimentState.ERROR
    assert "ZeroDivisionError" in str(kept.detail().error)
    failed = kept.trials[0].detail()
    assert failed.error is not None
    assert failed.error.batch == 2
    assert kept.detail().progress == failed.batches / failed.target_batches == 1 / failed.target_batches < 0.2


def test_of_a_failed_training_without_a_record_a_wait_raises_its_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DET_RECORD", "off")
    with pytest.raises(ZeroDivisionError):
        det.experimental.create(BrokenTrial, CONFIG, local=True)
    experiment = det.last_experiment()
    with pytest.raises(UserCodeError, match="ZeroDivisionError"):
        experiment.wait()
    assert [row["batch"] for row in experiment.trials[0].metrics()] == [1]


def test_trial_class_by_name_in_the_context_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "line_module.py").write_text(
        "from pathlib import Path\n"
        "from test_local_torch import LineTrial\n"
        "class Named(LineTrial):\n"
        "    def build_training_data_loader(self):\n"
        "        assert Path('line_module.py').exists()\n"
        "        return super().build_training_data_loader()\n"
    )
    before = Path.cwd()
    experiment = det.experimental.create("line_module:Named", CONFIG, local=True, context_dir=tmp_path)
    assert experiment.state is ExperimentState.COMPLETED
    assert Path.cwd() == before
    with pytest.raises(ArgumentError, match="no module 'nothing_here'"):
        det.experimental.create("nothing_here:Named", CONFIG, local=True)
    with pytest.raises(ArgumentError, match="no 'Nope'"):
        det.experimental.create("test_local_torch:Nope", CONFIG, local=True)


def test_what_is_no_trial_class_is_refused() -> None:
    with pytest.raises(TrialDefinitionError, match="takes a Trial class"):
        det.experimental.create(3, CONFIG, local=True)  # type: ignore[arg-type]
    with pytest.raises(TrialDefinitionError, match="not a subclass"):
        det.experimental.create(dict, CONFIG, local=True)  # type: ignore[arg-type]


def test_instance_outside_any_run() -> None:
    trial = det.experimental.create_trial_instance(LineTrial, "", CONFIG, {"global_batch_size": 2, "lr": 1.0})
    assert isinstance(trial, LineTrial)
    assert trial.context.get_hparam("lr") == 1.0
    assert trial.context.get_per_slot_batch_size() == 2


class FailsLater(LineTrial):
    """Cannot be validated."""

    def evaluate_batch(self, batch: Any) -> dict[str, Any]:
        raise RuntimeError("shapes cannot be multiplied")


def test_a_failure_is_kept_once_with_its_batch_and_the_users_lines() -> None:
    with pytest.raises(RuntimeError) as raised:
        det.experimental.create(FailsLater, CONFIG, local=True)
    names = [entry.name for entry in raised.traceback if entry.name != "call"]
    assert names[1:] == ["create", "evaluate_batch"]
    kept = det.last_experiment()
    [trial] = kept.trials
    error = trial.detail().error
    assert error is not None
    assert error == kept.detail().error
    assert error.batch == 4
    assert "in evaluate_batch" in error.traceback
    assert "det_harness" not in error.traceback


def test_gradients_of_a_loop_by_hand_are_not_in_the_first_step() -> None:
    context = det.experimental.pytorch.init(local=True)
    model = torch.nn.Linear(1, 1)
    model(torch.ones(1, 1)).sum().backward()
    context.wrap_model(model)
    assert all(parameter.grad is None for parameter in model.parameters())


def test_gradients_of_a_loop_by_hand_stay_for_a_loop_that_zeroes_them_itself() -> None:
    context = det.experimental.pytorch.init(local=True)
    model = torch.nn.Linear(1, 1)
    model(torch.ones(1, 1)).sum().backward()
    context.wrap(model)
    assert model.weight.grad is not None


def test_another_optimizer_is_wrapped_between_two_trainings_but_not_in_one() -> None:
    x = torch.linspace(-1, 1, 8).reshape(-1, 1)
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, 2 * x + 1), batch_size=4)
    context = det.experimental.pytorch.init(local=True)
    model = context.wrap_model(torch.nn.Linear(1, 1))
    by_hand = torch.nn.Linear(1, 1)
    by_hand.load_state_dict(model.state_dict())

    for kind in (torch.optim.SGD, torch.optim.Adam):
        optimizer, expected = context.wrap_optimizer(kind(model.parameters(), 0.1)), kind(by_hand.parameters(), 0.1)

        def train_batch(batch: Any, epoch_idx: int, batch_idx: int, optimizer: Any = optimizer) -> Any:
            with pytest.raises(ArgumentError, match="when the training had begun"):
                context.wrap_optimizer(torch.optim.SGD(model.parameters(), 0.1))
            loss = torch.nn.functional.mse_loss(model(batch[0]), batch[1])
            context.backward(loss)
            context.step_optimizer(optimizer)
            return loss

        context.fit(loader, train_batch=train_batch)
        for inputs, targets in loader:
            expected.zero_grad()
            torch.nn.functional.mse_loss(by_hand(inputs), targets).backward()
            expected.step()

    assert all(torch.equal(one, by_hand.state_dict()[name]) for name, one in model.state_dict().items())


def test_torch_loads_from_the_path_of_a_checkpoint() -> None:
    experiment = det.experimental.create(LineTrial, CONFIG, local=True)
    checkpoint = experiment.top_checkpoint()
    saved = torch.load(checkpoint.path / "state_dict.pth", weights_only=True)
    (weights,) = saved["models_state_dict"]
    loaded = checkpoint.load().model.state_dict()
    assert weights.keys() == loaded.keys()
    assert all(torch.equal(weights[name], loaded[name]) for name in loaded)
    assert checkpoint.path == checkpoint.path
