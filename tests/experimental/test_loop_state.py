"""``context.state`` and the place in the data, where a loop over ``context.train()`` is stopped and goes on."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from det_harness.frameworks.torch.users_state import Elsewhere, StateKeeper  # noqa: E402 (after the check for torch)
from loop_run import LoopRun  # noqa: E402
from native_line import Line, torch_generator, torch_is_warm  # noqa: E402, F401 (autouse)

from det_native.errors import TrialDefinitionError  # noqa: E402
from det_native.pytorch import PyTorchCallback  # noqa: E402

pytestmark = pytest.mark.slow

PERIODS = {"min_validation_period": {"batches": 3}, "min_checkpoint_period": {"batches": 4}}


class Counted(LoopRun):
    """Notes in ``context.state`` what its loop and its evaluation have seen."""

    def evaluate(self, batch: Any) -> dict[str, Any]:
        assert not self.model.training
        state = self.context.state
        state["evaluated"] = state.get("evaluated", 0) + 1
        self.stop = self.stop or state["evaluated"] == self.stop_at_evaluation
        return super().evaluate(batch)

    def note(self, stop_at_evaluation: int = 0, stop_at_batch: int = 0) -> dict[str, Any]:
        """Run the loop; what is compared of it."""
        self.stop_at_evaluation = stop_at_evaluation
        for batch in self.batches():
            assert self.model.training
            context = self.context
            place = (context.epoch_idx, context.batch_idx, context.is_epoch_start(), context.is_epoch_end())
            context.state.setdefault("places", []).append(place)
            self.step(batch)
            self.stop = self.stop or context.batch_idx + 1 == stop_at_batch
        return {**self.result(), "state": self.context.state}


def assert_same_end(parts: list[dict[str, Any]], whole: dict[str, Any]) -> None:
    """Check that a run in parts came to what the whole one did."""
    last = parts[-1]
    assert all(torch.equal(last["model"][name], whole["model"][name]) for name in whole["model"])
    assert last["state"] == whole["state"]
    assert last["rate"] == whole["rate"]
    for kind in ("training", "validation"):
        assert [row for part in parts for row in part[kind]] == whole[kind]


@pytest.mark.parametrize("stop", [{"stop_at_batch": 7}, {"stop_at_batch": 14}, {"stop_at_batch": 10}])
def test_a_loop_that_is_stopped_within_an_epoch_goes_on_there(tmp_path: Path, stop: dict[str, int]) -> None:
    whole = Counted(tmp_path / "whole", epochs=2, **PERIODS).note()
    first = Counted(tmp_path / "parts", epochs=2, **PERIODS)
    parts = [first.note(**stop)]
    assert parts[0]["outcome"] == (stop["stop_at_batch"], True)
    parts.append(Counted(tmp_path / "parts", epochs=2, resume=first.last(), **PERIODS).note())
    assert_same_end(parts, whole)
    epochs = [(batch // 10, batch, batch % 10 == 0, batch % 10 == 9) for batch in range(20)]
    assert whole["state"]["places"] == epochs


@pytest.mark.parametrize("evaluated", [5, 27, 57])
def test_what_is_in_the_state_when_a_validation_is_stopped_goes_on(tmp_path: Path, evaluated: int) -> None:
    whole = Counted(tmp_path / "whole", epochs=2, **PERIODS).note()
    first = Counted(tmp_path / "parts", epochs=2, **PERIODS)
    parts = [first.note(stop_at_evaluation=evaluated)]
    assert parts[0]["batches"] < 20
    parts.append(Counted(tmp_path / "parts", epochs=2, resume=first.last(), **PERIODS).note())
    assert_same_end(parts, whole)


class Frozen(LoopRun):
    """Its loop freezes the batch norm after some batches."""

    def modes(self, stop_at_batch: int = 0) -> list[bool]:
        """Run the loop; the batch norm's mode in each batch."""
        modes = []
        for batch in self.batches():
            assert self.model.training
            modes.append(self.model[1].training)
            self.step(batch)
            if self.context.batch_idx == 5:
                self.model[1].eval()
            self.stop = self.context.batch_idx + 1 == stop_at_batch
        return modes


def test_what_the_loop_has_frozen_stays_so_after_validations_and_a_restart(tmp_path: Path) -> None:
    whole = Frozen(tmp_path / "whole", epochs=2, **PERIODS)
    expected = [True] * 6 + [False] * 14
    assert whole.modes() == expected
    first = Frozen(tmp_path / "parts", epochs=2, **PERIODS)
    assert first.modes(stop_at_batch=9) == expected[:9]
    rest = Frozen(tmp_path / "parts", epochs=2, resume=first.last(), **PERIODS)
    assert rest.modes() == expected  # its list goes on, too
    states = whole.result()["model"], rest.result()["model"]
    assert all(torch.equal(states[0][name], states[1][name]) for name in states[0])


@pytest.mark.parametrize(
    ("value", "place", "kind"),
    [
        (threading.Lock(), r"context\.state\['kept'\]", "lock"),
        ({"log": [1, (number for number in (1, 2))]}, r"context\.state\['kept'\]\['log'\]\[1\]", "generator"),
    ],
    ids=["lock", "nested"],
)
def test_what_cannot_be_kept_is_named_by_its_key(value: Any, place: str, kind: str) -> None:
    line = Line()
    line.context.state["fine"] = {1, 2}
    line.context.state["kept"] = value
    with pytest.raises(TrialDefinitionError, match=rf"{place} is a {kind}, which cannot be kept in a checkpoint \("):
        line.fit()


def test_what_a_callback_cannot_keep_is_named_too() -> None:
    class Locked(PyTorchCallback):
        def state_dict(self) -> dict[str, Any]:
            return {"guard": threading.Lock()}

    with pytest.raises(TrialDefinitionError, match=r"state_dict\(\)\['guard'\] of the callback 'Locked-0' is a lock"):
        Line().fit(callbacks=[Locked()])


def test_a_tensor_of_another_device_comes_back_to_the_trials(tmp_path: Path) -> None:
    kept = torch.arange(3.0, requires_grad=True)
    run = LoopRun(tmp_path)
    run.context.state |= {"deep": [{"kept": Elsewhere(kept, "meta")}], "here": torch.ones(2)}
    keeper, saved = StateKeeper(run.context), dict(run.context.state)
    keeper.load_state_dict(saved)
    [deep] = run.context.state["deep"]
    assert torch.equal(deep["kept"], kept), "there is no such device here: it stays in host memory"
    run.context.device = torch.device("meta")
    keeper.load_state_dict(saved)
    [deep] = run.context.state["deep"]
    assert (deep["kept"].device.type, deep["kept"].requires_grad) == ("meta", True)
    assert run.context.state["here"].device.type == "cpu"


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_a_tensor_on_the_gpu_is_there_again(tmp_path: Path) -> None:
    first = LoopRun(tmp_path)
    first.context.state["mean"] = torch.full((2,), 3.0, device="cuda")
    first.train(stop_at=3)
    again = LoopRun(tmp_path, resume=first.last())
    for _ in again.batches():
        assert again.context.state["mean"].device == first.context.state["mean"].device
        assert again.context.state["mean"].tolist() == [3.0, 3.0]
        break
