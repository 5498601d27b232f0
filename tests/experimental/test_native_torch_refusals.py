"""What is wrong with ``fit()`` and ``train()`` of PyTorch is one sentence, before any training."""

import warnings
from collections.abc import Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from native_line import CONFIG, Line, loader_of, torch_generator, torch_is_warm  # noqa: E402, F401 (autouse)
from torch.utils.data import BatchSampler, DataLoader, IterableDataset, SequentialSampler, TensorDataset  # noqa: E402
from torch.utils.data.distributed import DistributedSampler  # noqa: E402

import det_native as det  # noqa: E402 (after the check for torch)
from det_native.errors import (  # noqa: E402
    ArgumentError,
    ConfigurationError,
    InvalidDataError,
    SignatureError,
    TrialDefinitionError,
    UnsupportedFeatureError,
)
from det_native.experimental.native import first_environment  # noqa: E402
from det_native.experimental.settings import check_settings, complete_for_fit  # noqa: E402
from det_native.pytorch import PyTorchCallback  # noqa: E402
from det_native.pytorch.native import PyTorchNativeContext  # noqa: E402
from det_native.schema.loading import ConfigurationWarning  # noqa: E402

pytestmark = pytest.mark.slow


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
        ({"epochs": True}, ArgumentError, "epochs must be a whole number of at least 1, not True"),
        ({"epochs": 1.5}, ArgumentError, "epochs must be a whole number"),
        ({"callbacks": [3]}, ArgumentError, "callbacks must be det.pytorch.PyTorchCallback objects.*not int"),
        ({"callbacks": [PyTorchCallback]}, ArgumentError, "not the class PyTorchCallback: make an object of it"),
        ({"callbacks": "all"}, ArgumentError, "callbacks must be"),
        ({"train_loader": [1, 2]}, InvalidDataError, "train_loader must be .* not list; wrap the data in a Dataset"),
        (
            {"train_loader": DataLoader(range(8), sampler=DistributedSampler(range(8), 2, 0))},  # type: ignore[arg-type]
            InvalidDataError,
            r"fit\(\) was given train_loader, a loader with a DistributedSampler, which takes one of 2 shares",
        ),
        ({"train_loader": TensorDataset(torch.ones(2))}, InvalidDataError, "not TensorDataset; make one of it"),
        ({"epoch": 4}, SignatureError, r"context\.fit\(\) takes no argument 'epoch'\. Did you mean epochs\?"),
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
    batches = other.loop()
    batch = next(batches)
    with pytest.raises(ArgumentError, match=r"the loop of context\.train\(\) gave step_optimizer\(\) a SGD"):
        other.step(batch)
    batches.close()


def test_a_metric_that_the_evaluation_lacks_is_told_before_training() -> None:
    line = Line(CONFIG | {"searcher": {"metric": "val_loss"}})
    with pytest.raises(
        TrialDefinitionError, match=r"'val_loss', but evaluate_nothing\(\) returned error, accuracy\. Return that"
    ):
        line.fit(evaluate_batch=evaluate_nothing)
    assert not line.calls


def test_an_evaluation_that_returns_no_dictionary_is_named_as_the_user_calls_it() -> None:
    with pytest.raises(TrialDefinitionError, match=r"^one_argument\(\) returned NoneType; return metrics by name"):
        Line().fit(evaluate_batch=one_argument)


class Strange:
    """A batch whose records nobody can count."""

    def __init__(self, records: Any) -> None:
        self.records = records


def test_batches_without_a_length_are_told_what_the_user_can_change() -> None:
    line = Line()
    loader = DataLoader(loader_of().dataset, batch_size=4, collate_fn=Strange)

    def train(batch: Any, epoch_idx: int, batch_idx: int) -> Any:
        return line.step(next(iter(loader_of())))

    with pytest.raises(InvalidDataError) as caught:
        line.context.fit(loader_of(), loader, train_batch=train, evaluate_batch=evaluate_strange)
    assert "let the batches of validation_loader be tensors, or tuples or dictionaries of them" in str(caught.value)
    assert "get_batch_length" not in str(caught.value)


def evaluate_strange(batch: Strange) -> dict[str, Any]:
    return {"val_loss": 1.0}


def test_a_place_outside_of_training_is_told_for_both_ways_to_train() -> None:
    line = Line()
    for ask in (lambda: line.context.epoch_idx, lambda: line.context.is_epoch_end()):
        with pytest.raises(
            TrialDefinitionError, match=r"^context\.(epoch_idx|is_epoch_end) has a meaning in .* the loop"
        ):
            ask()


def test_models_that_differ_between_slots_are_told_without_a_class() -> None:
    from det_harness.frameworks.torch.gradients.replicas import check_alike
    from det_harness.frameworks.torch.trial_state import wrapper_of

    class Two:
        """The exchange of two slots, of which the other one has no model."""

        def all_gather_object(self, value: Any) -> list[Any]:
            return [value, ([], [])]

    line = Line()
    with pytest.raises(TrialDefinitionError, match=r"^the program before context\.fit\(\) made other models on slot 1"):
        check_alike(wrapper_of("context.fit"), line.context.models, line.context.optimizers, Two())  # type: ignore[arg-type]


@pytest.mark.parametrize(("size", "warned"), [(4, False), (8, False), (6, True)])
def test_a_loader_with_a_slots_share_of_the_batch_contradicts_nothing(size: int, warned: bool) -> None:
    config = CONFIG | {"hyperparameters": {"global_batch_size": 8}, "resources": {"slots_per_trial": 2}}
    settings = check_settings(config, None, None, None, None, None, None, (), ())
    context = PyTorchNativeContext(first_environment(settings, "torch"), on_fit=lambda call: call)
    assert context.get_per_slot_batch_size() == 4
    model = context.wrap_model(torch.nn.Linear(1, 1))
    context.wrap_optimizer(torch.optim.SGD(model.parameters(), lr=0.1))
    call = context.fit(loader_of(16, size), train_batch=lambda batch, epoch_idx, batch_idx: None)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        complete = complete_for_fit(settings, call)
    assert [str(one.message) for one in caught if "global_batch_size" in str(one.message)] == [] or warned
    assert bool(caught) is warned
    assert complete.hyperparameters["global_batch_size"].model_dump()["val"] == 8


def test_a_validation_metric_without_validation_is_refused() -> None:
    line = Line(CONFIG | {"searcher": {"name": "single", "metric": "val_error"}})
    with pytest.raises(TrialDefinitionError, match=r"'val_error', but context\.fit\(\) has no validation"):
        line.alone()
    assert line.context.experiment is None


def test_report_outside_a_loop_and_of_no_metrics_is_refused() -> None:
    line = Line()
    with pytest.raises(TrialDefinitionError, match=r"context\.report\(\) is for the body of"):
        line.context.report(loss=1)
    batches = line.loop()
    next(batches)
    for wrong, shown in ((torch.ones(()), r"tensor\(1\.\)"), ({1: 2.0}, r"\{1: 2\.0\}")):
        with pytest.raises(ArgumentError, match=rf"takes metrics by name, not {shown}: context\.report\(loss=loss\)"):
            line.context.report(wrong)
    batches.close()


@pytest.mark.parametrize(
    ("names", "words"),
    [
        ([["loss"], ["loss", "extra"]], r"reported the metrics loss, extra for batch 2, but loss before; report"),
        ([["lost"]] * 6, r"searcher\.metric is 'loss', .* reported lost\. Did you mean 'lost'\? Report that metric"),
    ],
)
def test_metrics_of_a_loop_are_said_to_be_reported(names: list[list[str]], words: str) -> None:
    line = Line(CONFIG | {"searcher": {"metric": "loss"}})

    def run() -> None:
        for batch in line.loop(validation_loader=None, evaluate_batch=None):
            line.step(batch)
            line.context.report(dict.fromkeys(names[line.context.batch_idx], 1.0))

    with pytest.raises(TrialDefinitionError, match=words):
        run()


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
    context = PyTorchNativeContext.from_config(CONFIG | {"searcher": {"name": "single", "metric": "val_loss"}})
    model = context.wrap_model(torch.nn.Linear(1, 1))
    context.wrap_optimizer(torch.optim.SGD(model.parameters(), lr=0.1))
    with pytest.raises(ArgumentError, match="made by from_config"):
        context.train(loader_of())


def test_a_wrong_configuration_is_told_by_init() -> None:
    with pytest.raises(ConfigurationError, match="searcher"):
        det.experimental.pytorch.init({"searcher": {"name": "nothing"}}, local=True)


def test_sharded_models_are_refused_at_once() -> None:
    config = {"distributed": {"strategy": "fsdp"}, "resources": {"slots_per_trial": 2}}
    with pytest.raises(UnsupportedFeatureError, match=r"works for a PyTorchTrial class"):
        det.experimental.pytorch.init(CONFIG | config)


def test_a_misspelt_argument_of_the_loop_is_named() -> None:
    with pytest.raises(SignatureError, match=r"context\.train\(\) takes no argument 'valid_loader'\. Did you mean"):
        Line().context.train(loader_of(8, 4), valid_loader=loader_of(8, 4))  # type: ignore[call-arg]
