"""``fit()`` of ``det.experimental.pytorch`` in this process."""

import math
import random
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import native_line  # noqa: E402
from native_line import CONFIG, Line, loader_of, torch_generator, torch_is_warm  # noqa: E402, F401 (autouse)
from torch.utils.data import BatchSampler, DataLoader, IterableDataset, SequentialSampler, TensorDataset  # noqa: E402

import det_native as det  # noqa: E402 (after the check for torch)
from det_native.pytorch import PyTorchCallback  # noqa: E402
from det_native.schema.loading import ConfigurationWarning  # noqa: E402
from det_native.schema.states import ExperimentState  # noqa: E402

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("recorded")]


def test_fit_trains_to_the_end_and_returns_the_handle() -> None:
    line = Line()
    experiment = line.fit()
    assert experiment is line.context.experiment
    assert experiment.state is ExperimentState.COMPLETED
    assert line.calls == [(0, 0, 4), (0, 1, 4), (0, 2, 2), (1, 3, 4), (1, 4, 4), (1, 5, 2)]
    (trial,) = experiment.trials
    assert [row["batch"] for row in trial.metrics("training")] == [1, 2, 3, 4, 5, 6]
    assert [row["batch"] for row in trial.metrics("validation")] == [3, 6]
    assert {name: len(values) for name, values in experiment.history.items()} == {
        "loss": 2,
        "val_loss": 2,
        "val_records": 2,
    }
    assert det.attach(experiment.id).history == experiment.history


def test_validation_metrics_are_means_over_the_records() -> None:
    line = Line()
    experiment = line.fit()
    x = torch.linspace(-1, 1, 10).reshape(-1, 1)
    with torch.no_grad():
        whole = float(torch.nn.functional.mse_loss(line.model(x), 2 * x + 1))
    last = experiment.trials[0].metrics("validation")[-1]
    assert last["val_loss"] == pytest.approx(whole, rel=1e-5)
    assert last["records"] == pytest.approx((4 * 4 + 4 * 4 + 2 * 2) / 10)


def test_modules_frozen_before_fit_stay_so_and_a_model_left_in_evaluation_trains() -> None:
    frozen, left = Line(), Line()
    frozen.model = frozen.context.wrap_model(torch.nn.Sequential(torch.nn.Linear(1, 1), torch.nn.Dropout(0.5)))
    frozen.model[1].eval()
    left.model.eval()
    modes: list[tuple[bool, ...]] = []

    def train_batch(batch: Any, epoch_idx: int, batch_idx: int) -> Any:
        modes.append((frozen.model.training, frozen.model[1].training))
        return frozen.model(batch[0]).sum().detach()

    frozen.fit(train_batch=train_batch)
    assert set(modes) == {(True, False)}
    left.fit(train_batch=lambda batch, epoch_idx, batch_idx: {"training": float(left.model.training)})
    assert {row["training"] for row in left.context.experiment.trials[0].metrics("training")} == {1.0}


def test_a_checkpoint_loads_into_a_copy() -> None:
    line = Line()
    experiment = line.fit()
    trained = line.model.weight.clone()
    with torch.no_grad():
        line.model.weight.fill_(7)
    loaded = experiment.top_checkpoint().load()
    assert type(loaded) is torch.nn.Linear
    assert torch.equal(loaded.weight, trained)
    assert line.model.weight.item() == 7


def test_of_several_models_all_are_loaded() -> None:
    line = Line()
    second = line.context.wrap_model(torch.nn.Linear(2, 1))
    loaded = line.fit().top_checkpoint().load()
    assert [type(model) for model in loaded] == [torch.nn.Linear] * 2
    assert torch.equal(loaded[1].weight, second.weight)


def test_without_validation_the_means_of_the_training_metrics_compare_trials() -> None:
    experiment = Line().alone()
    assert experiment.config["searcher"]["metric"] == "loss"
    rows = [row["loss"] for row in experiment.trials[0].metrics("training")]
    validations = [row["loss"] for row in experiment.trials[0].metrics("validation")]
    assert validations == pytest.approx([sum(rows[:3]) / 3, sum(rows[3:]) / 3])
    assert experiment.top_checkpoint().metrics["loss"] == validations[1]


def test_the_first_metric_of_the_evaluation_compares_trials() -> None:
    line = Line()
    experiment = line.fit(evaluate_batch=lambda batch: {"error": line.loss(batch), "accuracy": 0.5})
    assert (experiment.metric, experiment.config["searcher"]["metric"]) == ("error", "error")
    rows = experiment.trials[0].metrics("validation")
    assert experiment.trials[0].best_validation == min(row["error"] for row in rows)
    assert experiment.detail().validates


def test_not_a_number_of_a_side_metric_of_the_evaluation_is_recorded() -> None:
    line = Line()
    experiment = line.fit(evaluate_batch=lambda batch: {"val_loss": line.loss(batch), "f1": float("nan")})
    assert [math.isnan(row["f1"]) for row in experiment.metrics()] == [True, True]
    assert all(map(math.isnan, experiment.history["val_f1"]))
    assert math.isnan(experiment.top_checkpoint().metrics["f1"])


def test_the_loader_fills_the_configuration_and_is_no_contradiction() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        config = Line().fit().config
    assert config["searcher"] == config["searcher"] | {"metric": "val_loss", "max_length": {"epochs": 2}}
    assert config["hyperparameters"]["global_batch_size"]["val"] == 4
    assert config["records_per_epoch"] == 10
    assert config["min_validation_period"] == {"epochs": 1}


def test_the_configuration_wins_with_one_warning() -> None:
    config = CONFIG | {
        "searcher": {"name": "single", "metric": "val_loss", "max_length": {"epochs": 3}},
        "hyperparameters": {"lr": 0.05, "global_batch_size": 5},
    }
    line = Line(config)
    with pytest.warns(ConfigurationWarning) as caught:
        line.fit()
    [warning] = caught
    assert "3 epochs in the configuration, 2 epochs in the call" in str(warning.message)
    assert "5 in the configuration, 4 in the call" in str(warning.message)
    assert warning.filename == native_line.__file__, "the line of the call"
    assert [size for _, _, size in line.calls] == [5] * 6


def test_the_batch_size_of_the_configuration_is_asked_for() -> None:
    line = Line(CONFIG | {"hyperparameters": {"lr": 0.05, "global_batch_size": 5}})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        line.fit(loader_of(batch_size=line.context.get_per_slot_batch_size()))
    assert [size for _, _, size in line.calls] == [5] * 4


def test_a_second_fit_has_the_batch_size_of_its_own_loader() -> None:
    line = Line()
    line.fit()
    experiment = line.fit(loader_of(batch_size=2))
    assert [records for _, _, records in line.calls] == [4, 4, 2] * 2 + [2] * 10
    assert experiment.config["hyperparameters"]["global_batch_size"]["val"] == 2
    assert "global_batch_size" not in line.context.get_hparams()


def test_epochs_may_be_a_number_of_numpys() -> None:
    line = Line()
    line.fit(epochs=np.int64(2))
    assert len({epoch for epoch, _, _ in line.calls}) == 2


def test_a_configuration_is_not_needed() -> None:
    experiment = Line(None).fit()
    assert len(experiment.history["loss"]) == 2


def test_without_epochs_one_is_trained() -> None:
    line = Line()
    line.fit(epochs=None)
    assert len(line.calls) == 3


@pytest.mark.parametrize("kind", ["batch sampler", "batches as items", "iterable with length"])
def test_loaders_of_every_kind(kind: str) -> None:
    x = torch.linspace(-1, 1, 12).reshape(-1, 1)
    data = TensorDataset(x, 2 * x + 1)

    class Stream(IterableDataset[Any]):
        def __iter__(self) -> Iterator[Any]:
            return iter([data[index] for index in range(12)])

        def __len__(self) -> int:
            return 12

    loaders = {
        "batch sampler": lambda: DataLoader(data, batch_sampler=BatchSampler(SequentialSampler(data), 4, False)),
        "batches as items": lambda: DataLoader([(x[:4], x[:4]), (x[4:8], x[4:8]), (x[8:], x[8:])], batch_size=None),
        "iterable with length": lambda: DataLoader(Stream(), batch_size=4),
    }
    line = Line()
    line.fit(loaders[kind]())
    assert [batch for _, batch, _ in line.calls] == list(range(6))
    assert [epoch for epoch, _, _ in line.calls] == [0, 0, 0, 1, 1, 1]
    assert len(line.context.experiment.history["val_loss"]) == 2


@pytest.mark.long
def test_shuffling_with_workers_is_the_same_again() -> None:
    histories = [Line().fit(loader_of(shuffle=True, num_workers=2)).history for _ in range(2)]
    assert histories[0] == histories[1]


def test_callbacks_in_a_list_or_by_name_are_called() -> None:
    class Count(PyTorchCallback):
        epochs = 0

        def on_training_epoch_end(self, epoch_idx: int) -> None:
            self.epochs += 1

    given = [Count(), Count(), Count()]
    Line().fit(callbacks=given[0])
    Line().fit(callbacks=[given[1]])
    Line().fit(callbacks={"count": given[2]})
    assert [one.epochs for one in given] == [2, 2, 2]


def test_mode_local_is_one_minimal_loop(capsys: pytest.CaptureFixture[str]) -> None:
    line = Line(CONFIG, local=None, mode="local")
    line.fit()
    assert "The quick check passed." in capsys.readouterr().out
    assert len(line.calls) == 1


def test_generators_that_a_training_does_not_use_are_left_alone() -> None:
    line = Line()  # init() seeds them
    random.seed(1)
    np.random.seed(1)
    expected = random.Random(1).random(), np.random.RandomState(1).rand()
    line.fit()
    assert (random.random(), np.random.rand()) == expected


def test_code_after_a_training_draws_on_from_its_end() -> None:
    line, loader = Line(), loader_of(shuffle=True)
    torch.manual_seed(4)
    for _ in range(2):  # a pass draws its order, and a seed for workers
        list(loader)
    expected = torch.rand(2)
    torch.manual_seed(4)
    line.alone(loader)
    assert torch.equal(torch.rand(2), expected)


def test_the_quick_check_of_a_search_trains_its_first_sample() -> None:
    config = CONFIG | {
        "searcher": {"name": "random", "metric": "val_loss", "max_trials": 3},
        "hyperparameters": {"lr": det.Log(-3, -1)},
    }
    line = Line(config, test=True)
    line.fit()
    assert len(line.calls) == 1
    assert line.optimizer.param_groups[0]["lr"] == 0.06009449379041913
