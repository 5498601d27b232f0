"""``det.experimental.pytorch`` in this process: ``fit()``, the user's own loop, and what is wrong with either."""

import gc
import importlib
import random
import signal
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch.utils.data import BatchSampler, DataLoader, IterableDataset, SequentialSampler, TensorDataset  # noqa: E402

import det_native as det  # noqa: E402 (after the check for torch)
from det_native.errors import (  # noqa: E402
    ArgumentError,
    ConfigurationError,
    InvalidDataError,
    TrialDefinitionError,
)
from det_native.pytorch import LRScheduler, PyTorchCallback  # noqa: E402
from det_native.schema.loading import ConfigurationWarning  # noqa: E402
from det_native.schema.states import ExperimentState  # noqa: E402

pytestmark = pytest.mark.slow

CONFIG: dict[str, Any] = {"hyperparameters": {"lr": 0.05}, "reproducibility": {"experiment_seed": 5}}


@pytest.fixture(scope="module", autouse=True)
def torch_is_warm() -> None:
    """Import what the first optimizer imports: it makes a cache folder and a variable for the whole process."""
    importlib.import_module("torch._dynamo")


@pytest.fixture(autouse=True)
def torch_generator() -> Iterator[None]:
    """``init()`` seeds torch in the user's process; the tests after this one are not to notice."""
    before = torch.get_rng_state()
    yield
    torch.set_rng_state(before)


class Line:
    """A user's objects and functions around one context."""

    def __init__(self, config: Any = CONFIG, **arguments: Any) -> None:
        self.context = det.experimental.pytorch.init(config, **({"local": True} | arguments))
        self.model = self.context.wrap_model(torch.nn.Linear(1, 1))
        rate = self.context.get_hparams().get("lr", 0.05)
        self.optimizer = self.context.wrap_optimizer(torch.optim.SGD(self.model.parameters(), lr=rate))
        self.calls: list[tuple[int, int, int]] = []

    def loss(self, batch: Any) -> Any:
        x, y = batch
        return torch.nn.functional.mse_loss(self.model(x), y)

    def step(self, batch: Any) -> Any:
        loss = self.loss(batch)
        self.context.backward(loss)
        self.context.step_optimizer(self.optimizer)
        return loss

    def train_batch(self, batch: Any, epoch_idx: int, batch_idx: int) -> dict[str, Any]:
        self.calls.append((epoch_idx, batch_idx, len(batch[0])))
        return {"loss": self.step(batch)}

    def evaluate_batch(self, batch: Any) -> dict[str, Any]:
        assert not self.model.training
        assert not torch.is_grad_enabled()
        return {"val_loss": self.loss(batch), "records": len(batch[0])}

    def fit(self, train_loader: Any = None, **arguments: Any) -> Any:
        given = {"train_batch": self.train_batch, "evaluate_batch": self.evaluate_batch, "epochs": 2}
        loader = loader_of() if train_loader is None else train_loader
        return self.context.fit(loader, loader_of(), **(given | arguments))

    def alone(self, train_loader: Any = None, **arguments: Any) -> Any:
        """Without validation."""
        loader = loader_of() if train_loader is None else train_loader
        return self.context.fit(loader, **({"train_batch": self.train_batch, "epochs": 2} | arguments))


def loader_of(records: int = 10, batch_size: int = 4, **further: Any) -> Any:
    x = torch.linspace(-1, 1, records).reshape(-1, 1)
    return DataLoader(TensorDataset(x, 2 * x + 1), batch_size=batch_size, **further)


# fit() ----------------------------------------------------------------------------------------------------------------


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
    assert warning.filename == __file__
    assert [size for _, _, size in line.calls] == [5] * 6


def test_the_batch_size_of_the_configuration_is_asked_for() -> None:
    line = Line(CONFIG | {"hyperparameters": {"lr": 0.05, "global_batch_size": 5}})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        line.fit(loader_of(batch_size=line.context.get_per_slot_batch_size()))
    assert [size for _, _, size in line.calls] == [5] * 4


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
    experiment = line.fit()
    assert "The quick check passed." in capsys.readouterr().out
    assert len(line.calls) == 1
    assert len(experiment.checkpoints) == 1


def test_the_users_generators_go_on_as_if_nothing_had_been_trained() -> None:
    random.seed(1)
    np.random.seed(1)
    expected = random.Random(1).random(), np.random.RandomState(1).rand()
    Line().fit()
    assert (random.random(), np.random.rand()) == expected


def test_here_a_search_is_one_trial_and_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    config = CONFIG | {
        "searcher": {"name": "random", "metric": "val_loss", "max_trials": 3},
        "hyperparameters": {"lr": det.Log(-3, -1)},
    }
    line = Line(config)
    experiment = line.fit()
    assert "here, fit() trains the model as it was built" in capsys.readouterr().out
    assert [trial.hparams["lr"] for trial in experiment.trials] == [line.context.get_hparam("lr")]


# The user's own loop --------------------------------------------------------------------------------------------------


def loop(line: Line, train_loader: Any = None, **arguments: Any) -> Iterator[Any]:
    given = {"epochs": 2, "validation_loader": loader_of(), "evaluate_batch": line.evaluate_batch}
    batches: Iterator[Any] = line.context.train(train_loader or loader_of(), **(given | arguments))
    return batches


def test_a_loop_is_the_same_as_fit() -> None:
    fitted, looped = Line(), Line()
    fitted.fit(loader_of(shuffle=True))
    for batch in loop(looped, loader_of(shuffle=True)):
        assert looped.model.training
        looped.context.report({"loss": looped.step(batch)})
    assert torch.equal(fitted.model.weight, looped.model.weight)
    here, there = fitted.context.experiment, looped.context.experiment
    for kind in ("training", "validation"):
        assert here.trials[0].metrics(kind) == there.trials[0].metrics(kind)
    assert there.state is ExperimentState.COMPLETED
    assert torch.equal(there.top_checkpoint().load().weight, here.top_checkpoint().load().weight)


def test_the_loop_knows_its_batch_and_epoch_and_steps_schedulers() -> None:
    line = Line()
    scheduler = torch.optim.lr_scheduler.ExponentialLR(line.optimizer, 0.5)
    line.context.wrap_lr_scheduler(scheduler, LRScheduler.StepMode.STEP_EVERY_EPOCH)
    seen = []
    for batch in loop(line):
        line.step(batch)
        seen.append((line.context.epoch_idx, line.context.batch_idx, scheduler.get_last_lr()[0]))
    assert seen == [(0, 0, 0.05), (0, 1, 0.05), (0, 2, 0.05), (1, 3, 0.025), (1, 4, 0.025), (1, 5, 0.025)]


def test_reports_are_of_their_batch_and_may_be_left_out() -> None:
    line = Line()
    for batch in loop(line):
        loss = line.step(batch)
        if line.context.batch_idx % 2 == 0:
            line.context.report(loss=loss)
            line.context.report(half=1)
    assert [(row["batch"], row["half"]) for row in line.context.experiment.trials[0].metrics()] == [
        (1, 1),
        (3, 1),
        (5, 1),
    ]


def leave_by_break(line: Line) -> None:
    for batch in loop(line):
        line.context.report(loss=line.step(batch))
        if line.context.batch_idx == 3:
            break


def leave_by_return(line: Line) -> None:
    for batch in loop(line):
        line.context.report(loss=line.step(batch))
        if line.context.batch_idx == 3:
            return


def leave_through_enumerate(line: Line) -> None:
    for number, batch in enumerate(loop(line)):
        line.context.report(loss=line.step(batch))
        if number == 3:
            break


def leave_through_a_generator(line: Line) -> None:
    for batch in (batch for batch in loop(line)):
        line.context.report(loss=line.step(batch))
        if line.context.batch_idx == 3:
            break


def leave_what_has_a_name(line: Line) -> None:
    batches = loop(line)
    for batch in batches:
        line.context.report(loss=line.step(batch))
        if line.context.batch_idx == 3:
            return


WAYS_OUT = [
    leave_by_break,
    leave_by_return,
    leave_through_enumerate,
    leave_through_a_generator,
    leave_what_has_a_name,
]


@pytest.mark.parametrize("leave", WAYS_OUT, ids=lambda leave: leave.__name__)
def test_leaving_the_loop_ends_the_training_there(leave: Any) -> None:
    line = Line()
    handler = signal.getsignal(signal.SIGINT)
    leave(line)
    gc.collect()  # a loop by another name ends with its function, when that is collected
    experiment = line.context.experiment
    assert experiment.state is ExperimentState.COMPLETED
    assert [row["batch"] for row in experiment.trials[0].metrics()] == [1, 2, 3, 4]
    assert experiment.trials[0].checkpoints[-1].batch == 4
    assert torch.equal(experiment.trials[0].checkpoints[-1].load().weight, line.model.weight)
    assert signal.getsignal(signal.SIGINT) is handler


def test_an_exception_in_the_loop_ends_it_as_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    line = Line()
    handler = signal.getsignal(signal.SIGINT)

    def train() -> None:
        for batch in loop(line):
            line.context.report(loss=line.step(batch))
            if line.context.batch_idx == 3:
                raise KeyError("three")

    with pytest.raises(KeyError, match="three"):
        train()
    assert signal.getsignal(signal.SIGINT) is handler
    assert "det.attach('local-1')" in capsys.readouterr().out
    kept = det.attach("local-1")
    assert kept.state is ExperimentState.ERROR
    assert [row["batch"] for row in kept.trials[0].metrics()] == [1, 2, 3]
    assert "An exception in the body of the loop" in str(kept.detail().error)
    with pytest.raises(TrialDefinitionError, match="for the body of"):
        line.context.report(loss=1.0)


def test_stopping_from_inside_the_loop() -> None:
    line = Line()
    for batch in loop(line):
        line.step(batch)
        line.context.set_stop_requested(line.context.batch_idx == 1)
    assert line.context.experiment.trials[0].checkpoints[-1].batch == 2
    assert line.context.experiment.state is ExperimentState.COMPLETED


def test_state_is_in_checkpoints(tmp_path: Path) -> None:
    line = Line()
    line.context.state["best"] = {"loss": 1.5, "of": [1, 2]}
    line.fit()
    folder = line.context.experiment.top_checkpoint().download(tmp_path / "files")
    assert "best" in (folder / "callbacks.json").read_text()


# Bad input ------------------------------------------------------------------------------------------------------------


def evaluate_nothing(batch: Any) -> dict[str, Any]:
    return {"error": 1.0, "accuracy": 0.5}


def one_argument(batch: Any) -> Any:
    return None


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"train_batch": None}, TrialDefinitionError, r"context\.fit\(\) needs train_batch=\.\.\., a function"),
        ({"train_batch": 3}, TrialDefinitionError, "train_batch must be a function .* not int"),
        ({"train_batch": one_argument}, TrialDefinitionError, r"one_argument\(.*must take \(batch, epoch_idx"),
        ({"evaluate_batch": None}, TrialDefinitionError, "validation_loader, but no evaluate_batch"),
        ({"evaluate_batch": lambda: 1}, TrialDefinitionError, r"must take \(batch\)"),
        ({"epochs": 0}, ArgumentError, "epochs must be a whole number of at least 1, not 0"),
        ({"epochs": 1.5}, ArgumentError, "epochs must be a whole number"),
        ({"callbacks": [3]}, ArgumentError, "callbacks must be det.pytorch.PyTorchCallback objects.*not int"),
        ({"callbacks": [PyTorchCallback]}, ArgumentError, "not the class PyTorchCallback: make an object of it"),
        ({"callbacks": "all"}, ArgumentError, "callbacks must be"),
        ({"train_loader": [1, 2]}, InvalidDataError, "train_loader must be .* not list; wrap the data in a Dataset"),
        ({"train_loader": TensorDataset(torch.ones(2))}, InvalidDataError, "not TensorDataset; make one of it"),
        ({"train_loader": loader_of(2, 4, drop_last=True)}, InvalidDataError, "train_loader .* has no batches"),
    ],
)
def test_what_is_wrong_with_a_call_is_said_in_one_sentence(
    arguments: dict[str, Any], error: type[Exception], message: str
) -> None:
    line = Line()
    with pytest.raises(error, match=message):
        line.fit(**arguments)
    assert not line.calls
    assert line.context.experiment is None
    line.fit()  # the objects are as they were


def test_an_evaluation_without_data_is_refused() -> None:
    line = Line()
    with pytest.raises(TrialDefinitionError, match="evaluate_batch=evaluate_nothing, but no validation_loader"):
        line.alone(evaluate_batch=evaluate_nothing)


def test_a_missing_loader_is_named() -> None:
    with pytest.raises(InvalidDataError, match=r"context\.train\(\) needs train_loader=\.\.\."):
        Line().context.train()


def test_nothing_wrapped_is_said() -> None:
    context = det.experimental.pytorch.init(CONFIG, local=True)
    with pytest.raises(TrialDefinitionError, match=r"no model is wrapped\. Write model = context\.wrap_model"):
        context.fit(loader_of(), train_batch=lambda batch, epoch_idx, batch_idx: None)
    model = context.wrap_model(torch.nn.Linear(1, 1))
    with pytest.raises(TrialDefinitionError, match=r"no optimizer is wrapped\. Write optimizer"):
        context.train(loader_of())
    context.wrap_optimizer(torch.optim.SGD([*model.parameters(), *torch.nn.Linear(1, 1).parameters()], lr=0.1))
    with pytest.raises(TrialDefinitionError, match="parameters that belong to no wrapped model"):
        context.train(loader_of())


def test_an_optimizer_that_is_not_wrapped_is_refused() -> None:
    line = Line()
    line.optimizer = torch.optim.SGD(line.model.parameters(), lr=0.1)
    with pytest.raises(ArgumentError, match=r"train_batch\(\) gave step_optimizer\(\) a SGD that is not wrapped"):
        line.fit()
    other = Line()
    other.optimizer = torch.optim.SGD(other.model.parameters(), lr=0.1)
    batches = loop(other)
    batch = next(batches)
    with pytest.raises(ArgumentError, match=r"the loop of context\.train\(\) gave step_optimizer\(\) a SGD"):
        other.step(batch)
    batches.close()


def test_a_metric_that_the_evaluation_lacks_is_told_before_training() -> None:
    line = Line()
    with pytest.raises(
        TrialDefinitionError, match=r"'val_loss', but evaluate_nothing\(\) returned error, accuracy\. Return that"
    ):
        line.fit(evaluate_batch=evaluate_nothing)
    assert not line.calls


def test_a_validation_metric_without_validation_is_refused() -> None:
    line = Line(CONFIG | {"searcher": {"name": "single", "metric": "val_error"}})
    with pytest.raises(TrialDefinitionError, match=r"'val_error', but context\.fit\(\) has no validation"):
        line.alone()
    assert line.context.experiment is None


def test_one_context_is_one_experiment() -> None:
    line = Line()
    line.fit()
    with pytest.raises(TrialDefinitionError, match=r"context\.fit\(\) has trained .* Call init\(\) again"):
        line.fit()
    with pytest.raises(TrialDefinitionError, match=r"context\.train\(\) was called, but context\.fit\(\) has"):
        line.context.train(loader_of())
    looped = Line()
    for _ in loop(looped):
        with pytest.raises(TrialDefinitionError, match=r"context\.fit\(\) was called, but context\.train\(\) has"):
            looped.fit()
        break


def test_report_outside_a_loop_and_of_no_metrics_is_refused() -> None:
    line = Line()
    with pytest.raises(TrialDefinitionError, match=r"context\.report\(\) is for the body of"):
        line.context.report(loss=1)
    batches = loop(line)
    next(batches)
    with pytest.raises(ArgumentError, match=r"takes metrics by name, not Tensor: context\.report\(loss=loss\)"):
        line.context.report(torch.ones(()))
    batches.close()


def test_a_stream_without_length_needs_the_configuration() -> None:
    class Stream(IterableDataset[Any]):
        def __iter__(self) -> Iterator[Any]:
            x = torch.linspace(-1, 1, 8).reshape(-1, 1)
            return iter(TensorDataset(x, x))

    with pytest.raises(InvalidDataError, match="does not tell where an epoch ends: give its dataset, Stream, a __len"):
        Line().fit(DataLoader(Stream(), batch_size=4))
    line = Line(CONFIG | {"records_per_epoch": 8})
    line.fit(DataLoader(Stream(), batch_size=4))
    assert len(line.calls) == 4


def test_a_batch_sampler_that_contradicts_the_configuration_is_refused() -> None:
    data = loader_of().dataset
    loader = DataLoader(data, batch_sampler=BatchSampler(SequentialSampler(data), 5, False))
    line = Line(CONFIG | {"hyperparameters": {"lr": 0.05, "global_batch_size": 4}})
    with pytest.warns(ConfigurationWarning), pytest.raises(InvalidDataError, match="batch_sampler of its own, with 5"):
        line.fit(loader)


def test_mixed_precision_by_apex_belongs_to_fit() -> None:
    line = Line()
    line.context.configure_apex_amp(line.model, line.optimizer, opt_level="O1")
    with pytest.raises(TrialDefinitionError, match=r"works with context\.fit\(\): in a loop of your own"):
        line.context.train(loader_of())
    line.fit()


def test_a_context_outside_any_run_trains_nothing() -> None:
    from det_native.pytorch.native import PyTorchNativeContext

    context = PyTorchNativeContext.from_config(CONFIG | {"searcher": {"name": "single", "metric": "val_loss"}})
    model = context.wrap_model(torch.nn.Linear(1, 1))
    context.wrap_optimizer(torch.optim.SGD(model.parameters(), lr=0.1))
    with pytest.raises(ArgumentError, match="made by from_config"):
        context.train(loader_of())


def test_a_wrong_configuration_is_told_by_init() -> None:
    with pytest.raises(ConfigurationError, match="searcher"):
        det.experimental.pytorch.init({"searcher": {"name": "nothing"}}, local=True)
