"""``len(context.train(...))``: the batches of the whole training, the same wherever the program runs."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from native_line import CONFIG, Line, loader_of, torch_generator, torch_is_warm  # noqa: E402, F401 (autouse)

from det_native.errors import InvalidDataError  # noqa: E402 (after the check for torch)
from det_native.runtime import hosted  # noqa: E402
from det_native.schema.environment import Ranks, TrialEnvironment  # noqa: E402
from det_native.schema.loading import load_config  # noqa: E402

pytestmark = pytest.mark.slow

BATCH_SIZE_2: dict[str, Any] = {"hyperparameters": {"lr": 0.05, "global_batch_size": 2}}


@pytest.mark.parametrize(
    ("changed", "batches"),
    [
        ({}, 6),  # 2 epochs of 3 batches, the last of them smaller
        (BATCH_SIZE_2, 10),
        ({"records_per_epoch": 4}, 2),
        ({"searcher": {"name": "single", "metric": "val_loss", "max_length": {"batches": 4}}}, 4),
    ],
)
def test_the_loop_is_as_long_as_it_says(changed: dict[str, Any], batches: int) -> None:
    line = Line(CONFIG | changed)
    loop: Any = line.loop()
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # what is warned of is warned of once, by the training
        assert len(loop) == batches
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert sum(1 for _ in map(line.step, loop)) == batches
    assert len(loop) == batches


def test_a_quick_check_has_one_batch() -> None:
    line = Line(test=True)
    loop: Any = line.loop()
    assert len(loop) == 1
    assert sum(1 for _ in map(line.step, loop)) == 1


def test_where_an_epoch_has_no_known_end_it_is_told() -> None:
    class Stream(torch.utils.data.IterableDataset):  # type: ignore[misc]
        def __iter__(self) -> Any:
            return iter([])

    batches = Line().context.train(torch.utils.data.DataLoader(Stream(), batch_size=4))
    assert batches
    for ask in (len, next):
        with pytest.raises(InvalidDataError, match="does not tell where an epoch ends"):
            ask(batches)


class Host:
    """Runs a program again for a trial on several slots, and trains nothing."""

    role = "worker"

    def __init__(self, environment: TrialEnvironment, *, owner: bool) -> None:
        self.environment = environment
        self._owner = owner

    def owns_init(self) -> bool:
        return self._owner

    def set_streams_of_init(self) -> None:
        pass

    def take_call(self, kind: str, payload: Any) -> Any:
        raise NotImplementedError

    def take_loop(self, kind: str, payload: Any) -> Any:
        return lambda: iter(())


@pytest.mark.filterwarnings("ignore:.*no loop has asked")
@pytest.mark.parametrize("slots", [1, 2])
def test_it_is_the_same_for_the_one_who_submits_and_on_a_worker(slots: int) -> None:
    config = CONFIG | BATCH_SIZE_2 | {"resources": {"slots_per_trial": slots}}
    line = Line(config, local=False)
    here: Any = line.loop(loader_of(batch_size=2))
    assert len(here) == 10
    searcher = {"name": "single", "metric": "val_loss", "max_length": {"epochs": 2}}
    complete = load_config(config | {"records_per_epoch": 10, "searcher": searcher}).model_dump(mode="json")
    environment = replace(line.context.env, config=complete, ranks=Ranks(slots - 1, slots, 0, slots))
    for owner in (True, False):
        with hosted(Host(environment, owner=owner)):
            there: Any = Line(config).loop(loader_of(batch_size=2))
        assert len(there) == 10
