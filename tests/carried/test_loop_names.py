"""The names of a loop: what differs from its beginning is saved, and put back in a process like it."""

from __future__ import annotations

import pickle
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from carried_runs import Rounds, run, torch_is_warm, whole_and_resumed  # noqa: F401 (autouse)
from hypothesis import given
from hypothesis import strategies as st

COUNTERS = """
losses, best, waited = [], float("inf"), 0
for number in rounds():
    loss = (number - 2) ** 2 / 7
    losses.append(loss)
    if loss < best:
        best, waited = loss, 0
    else:
        waited += 1
seen = [losses, best, waited, number, loss]
"""
IN_FUNCTION = """
def train():
    losses, best, total = [], None, 0

    def note(loss):
        nonlocal total
        total += loss

    for number in rounds():
        loss = (number - 2) ** 2 / 7
        losses.append(loss)
        note(loss)
        if best is None or loss < best:
            best = loss
    return losses, best, total, loss


seen = train()
"""
OBJECTS = """
import collections
import numpy as np


class Stopper:
    instances = 0

    def __init__(self):
        self.best, self.waited, self.history = None, 0, collections.deque(maxlen=2)

    def __call__(self, loss):
        global calls
        calls += 1
        Stopper.instances += 1
        self.history.append(loss)
        if self.best is None or loss < self.best:
            self.best, self.waited = loss, 0
        else:
            self.waited += 1


class Slotted:
    __slots__ = ("value", "other")

    def __init__(self):
        self.value = 0


calls = 0
stopper, slotted = Stopper(), Slotted()
holder = {"stopper": stopper, "rows": [[1], [2]]}
row = holder["rows"][1]
total = np.zeros(3)
alias = total
kinds = collections.Counter()
done = set()
for number in rounds():
    stopper(abs(number - 2))
    slotted.value += number
    slotted.other = "set"
    row.append(number)
    total += number
    kinds[number % 2] += 1
    done.add(number)
    latest = Stopper()
    latest.best = number
seen = [
    calls, Stopper.instances, vars(stopper), slotted.value, slotted.other, holder["rows"], total.tolist(),
    alias.tolist(), kinds, done, latest.best,
]
same = [holder["stopper"] is stopper, holder["rows"][1] is row, alias is total, type(latest) is Stopper]
"""
TORCH = """
import copy
import torch

torch.manual_seed(1)
model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Dropout(0.5), torch.nn.Linear(4, 1))
ema = copy.deepcopy(model)
best, best_state, best_model = model, None, None
shadow = {name: value.detach().clone() for name, value in model.named_parameters()}
aliased = None
for number in rounds():
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(number + 1)
        for mine, its in zip(ema.parameters(), model.parameters()):
            mine.data.mul_(0.9).add_(its.data, alpha=0.1)
        for name, value in model.named_parameters():
            shadow[name] = 0.5 * shadow[name] + 0.5 * value
    if number % 2:
        best_state, best_model = copy.deepcopy(model.state_dict()), copy.deepcopy(model)
    aliased = model.state_dict()
"""


def test_numbers_and_lists_go_on() -> None:
    whole, resumed = whole_and_resumed(COUNTERS)
    assert resumed["seen"] == whole["seen"]


def test_variables_of_a_function_go_on_and_those_of_its_closure() -> None:
    whole, resumed = whole_and_resumed(IN_FUNCTION)
    assert resumed["seen"] == whole["seen"]


def test_objects_go_on_in_place() -> None:
    whole, resumed = whole_and_resumed(OBJECTS)
    assert resumed["seen"] == whole["seen"]
    assert resumed["same"] == [True] * 4


def _known(names: dict[str, Any]) -> dict[Any, Any]:
    model = names["model"]
    return {
        **{("module", name): module for name, module in model.named_modules()},
        **{("parameter", name): one for name, one in model.named_parameters()},
    }


def test_copies_of_a_model_go_on_and_the_model_itself_is_referred_to() -> None:
    whole = run(TORCH, Rounds(range(6)))
    first = Rounds(range(3), known=_known)
    stopped = run(TORCH, first)
    assert first.saved is not None
    weights = {name: value.clone() for name, value in stopped["model"].state_dict().items()}

    def known(names: dict[str, Any]) -> dict[Any, Any]:
        names["model"].load_state_dict(weights)  # as the trial does
        return _known(names)

    second = Rounds(range(3, 6), data=first.saved.data, known=known)
    resumed = run(TORCH, second)
    assert not second.lost
    for name in ("model", "ema", "best_model"):
        for mine, its in zip(whole[name].parameters(), resumed[name].parameters(), strict=True):
            assert torch.equal(mine, its), name
    for name in ("shadow", "best_state"):
        assert all(torch.equal(value, resumed[name][key]) for key, value in whole[name].items()), name
    assert resumed["best"] is resumed["model"]
    assert resumed["aliased"]["0.weight"].data_ptr() == resumed["model"][0].weight.data_ptr()


def test_a_view_of_a_wrapped_model_stays_one() -> None:
    first = Rounds(range(3), known=_known)
    run(TORCH, first)
    assert first.saved is not None
    ended = Rounds(range(0), data=first.saved.data, known=_known)
    names = run(TORCH, ended)
    assert not ended.lost
    assert names["aliased"]["0.weight"].data_ptr() == names["model"][0].weight.data_ptr()


def test_what_has_not_changed_is_not_stored() -> None:
    text = "import numpy as np\ndata = np.arange(1_000_000)\nheld = {'data': data, 'n': 0}\nfor number in rounds():\n"
    rounds = Rounds(range(2))
    run(f"{text}    held['n'] += int(data[number])", rounds)
    assert rounds.saved is not None
    assert len(rounds.saved.data) < 2000
    again = Rounds(range(0), data=rounds.saved.data)
    names = run(f"{text}    held['n'] += int(data[number])", again)
    assert names["held"]["n"] == 1
    assert names["held"]["data"] is names["data"]


def test_a_name_that_the_loop_deletes_is_deleted() -> None:
    text = "first = 1\nfor number in rounds():\n    if number == 0:\n        del first\nseen = 'first' in globals()"
    whole, resumed = whole_and_resumed(text)
    assert whole["seen"] is resumed["seen"] is False
    text = "def train():\n    first = 1\n    for number in rounds():\n        if number == 0:\n            del first\n"
    text += "    return 'first' in locals()\nseen = train()"
    whole, resumed = whole_and_resumed(text)
    assert whole["seen"] is resumed["seen"] is False


def test_what_cannot_be_kept_is_named() -> None:
    text = "numbers = (n for n in range(9))\nlosses = []\nfor number in rounds():\n    losses.append(next(numbers))\n"
    rounds = Rounds(range(2))
    run(text, rounds)
    assert rounds.names is not None
    assert rounds.names.unkept == {"numbers": "a generator"}
    assert rounds.saved is not None
    assert not rounds.saved.lost


def test_what_is_made_and_cannot_be_pickled_is_named_and_the_rest_is_kept() -> None:
    text = (
        "losses, file = [], None\nfor number in rounds():\n    losses.append(number)\n    file = (n for n in losses)\n"
    )
    rounds = Rounds(range(2))
    run(text, rounds)
    assert rounds.saved is not None
    assert [*rounds.saved.lost] == ["file"]
    again = Rounds(range(0), data=rounds.saved.data)
    names = run(text, again)
    assert [*again.lost] == ["file"]
    assert names["losses"] == [0, 1]


def test_what_is_too_large_is_named_and_the_rest_is_kept() -> None:
    text = "import numpy as np\nlosses = []\nfor number in rounds():\n    losses.append(number)\n"
    rounds = Rounds(range(2), limit=1 << 20)
    run(f"{text}    large = np.random.rand(300_000)", rounds)
    assert rounds.saved is not None
    assert rounds.saved.lost == {"large": "is larger than 1 MB"}
    several = Rounds(range(2), limit=1 << 20)
    run(f"{text}    one, two = np.random.rand(80_000), np.random.rand(90_000)", several)
    assert several.saved is not None
    assert [*several.saved.lost] == ["two"]


def test_iterators_of_python_go_on() -> None:
    text = "import itertools\nnumbers, seen = itertools.count(), []\n"
    text += "for number in rounds():\n    seen.append(next(numbers))"
    whole, resumed = whole_and_resumed(text)
    assert resumed["seen"] == whole["seen"]


def test_a_progress_bar_is_left_alone() -> None:
    text = "import tqdm, io\nbar = tqdm.tqdm(total=6, file=io.StringIO())\nn = 0\n"
    whole, resumed = whole_and_resumed(f"{text}for number in rounds():\n    bar.update()\n    n += 1")
    assert whole["n"] == resumed["n"] == 6


def test_tables_of_pandas_go_on() -> None:
    text = "import pandas as pd\ntable = pd.DataFrame({'a': [0.0]})\nkept = [table]\nfor number in rounds():\n"
    whole, resumed = whole_and_resumed(f"{text}    table.loc[len(table)] = number / 3")
    assert resumed["table"].equals(whole["table"])
    assert resumed["kept"][0] is resumed["table"]


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner) | st.tuples(inner, inner),
    max_leaves=20,
)


@given(before=_VALUES, values=st.lists(_VALUES, min_size=6, max_size=6))
def test_any_value_goes_on(before: Any, values: list[Any]) -> None:
    text = "kept, last = [before], before\nfor number in rounds():\n    last = values[number]\n    kept.append(last)\n"
    stored = pickle.dumps((before, values))
    text = f"import pickle\nbefore, values = pickle.loads({stored!r})\n{text}"
    whole, resumed = whole_and_resumed(text)
    assert resumed["kept"] == whole["kept"]
    assert resumed["last"] == whole["last"]


@pytest.mark.parametrize("kind", [np.zeros, torch.zeros])
def test_arrays_of_another_shape_take_the_place_of_others(kind: Any) -> None:
    text = "held = {'scores': kind(0)}\nfor number in rounds():\n    held['scores'] = kind(number + 1)"
    first = Rounds(range(3))
    run(text, first, kind=kind)
    assert first.saved is not None
    again = run(text, Rounds(range(0), data=first.saved.data), kind=kind)
    assert tuple(again["held"]["scores"].shape) == (3,)


HELPER = """
LOSSES = []
COUNT = 0


def note(loss):
    global COUNT
    COUNT += 1
    LOSSES.append(loss)
"""
WITH_HELPER = """
import helper_of_loop
from helper_of_loop import note

for number in rounds():
    note(number)
seen = [helper_of_loop.COUNT, helper_of_loop.LOSSES]
"""


def test_modules_of_the_users_are_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "helper_of_loop.py").write_text(HELPER)
    monkeypatch.syspath_prepend(str(tmp_path))

    def run_anew(rounds: Rounds) -> Any:
        sys.modules.pop("helper_of_loop", None)
        return run(WITH_HELPER, rounds)["seen"]

    try:
        first = Rounds(range(3))
        run_anew(first)
        assert first.saved is not None
        assert run_anew(Rounds(range(3, 6), data=first.saved.data)) == [6, [0, 1, 2, 3, 4, 5]]
    finally:
        sys.modules.pop("helper_of_loop", None)


def test_an_object_of_a_library_that_holds_something_of_its_process_is_no_trouble() -> None:
    text = "import logging, threading\nlog, lock = logging.getLogger('loop'), threading.Lock()\nlosses = []\n"
    text += "for number in rounds():\n    log.debug('%s', number)\n    with lock:\n        losses.append(number)\n"
    text += "seen = losses"
    whole, resumed = whole_and_resumed(text)
    assert resumed["seen"] == whole["seen"]


SCALER = """
import torch

scaler = torch.amp.GradScaler("cpu", init_scale=64.0, growth_interval=2)
weight = torch.nn.Parameter(torch.ones(2))
optimizer = torch.optim.Adam([weight], 0.1)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2, 0.5)
drawn = torch.Generator().manual_seed(3)
buffer = torch.zeros(6)
rows = []
for number in rounds():
    scaler.scale((weight * (number - 2)).sum()).backward()
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad()
    scheduler.step()
    buffer[number] = float(torch.rand((), generator=drawn))
    rows.append(scheduler.get_last_lr())
seen = [weight.detach().tolist(), scaler.get_scale(), buffer.tolist(), rows]
same = optimizer.param_groups[0]["params"][0] is weight and scheduler.optimizer is optimizer
"""


def test_unwrapped_optimizers_schedulers_scalers_and_generators_go_on() -> None:
    whole, resumed = whole_and_resumed(SCALER)
    assert resumed["seen"] == whole["seen"]
    assert resumed["same"]


def test_averaged_models_go_on() -> None:
    text = "import torch\ntorch.manual_seed(1)\nmodel = torch.nn.Linear(2, 2)\n"
    text += "average = torch.optim.swa_utils.AveragedModel(model)\nfor number in rounds():\n    with torch.no_grad():\n"
    text += "        model.weight.fill_(number)\n    average.update_parameters(model)\n"
    text += "seen = [average.module.weight.tolist(), average.n_averaged.item()]"
    whole, resumed = whole_and_resumed(text)
    assert resumed["seen"] == whole["seen"]


TRAINER = """
import threading


class Trainer:
    def __init__(self):
        self.lock, self.losses, self.best = threading.Lock(), [], 9

    def fit(self):
        for number in rounds():
            self.losses.append(number)
            self.best = min(self.best, number)


trainer = Trainer()
losses = trainer.losses
trainer.fit()
seen = [losses, trainer.best]
"""


def test_a_trainer_that_holds_a_lock_goes_on_in_place() -> None:
    whole, resumed = whole_and_resumed(TRAINER)
    assert resumed["seen"] == whole["seen"]


def test_what_the_user_has_bound_since_the_beginning_stays() -> None:
    text = "losses, best = [], 0\nfor number in rounds():\n    losses.append(number)\n    best, loss = number, number\n"
    first = Rounds(range(3))
    run(text, first)
    second = Rounds(range(0))
    names = run(text, second)
    names["best"] = "mine"
    assert second.names is not None
    assert first.saved is not None
    assert second.names.restore(first.saved.data, unless_bound=True) == {}
    assert [names["losses"], names["best"], names["loss"]] == [[0, 1, 2], "mine", 2]


def test_large_data_cost_next_to_nothing_in_each_save() -> None:
    text = "data = [(number, str(number)) for number in range(100_000)]\nn = 0\n"
    text += "for number in rounds():\n    n += len(data)\n"
    rounds = Rounds(range(1))
    run(text, rounds)
    assert rounds.names is not None
    begun = time.process_time()
    saved = rounds.names.save()
    assert time.process_time() - begun < 0.3
    assert len(saved.data) < 1000


ONE_WAY = """
class OneWay:
    made = 0

    def __init__(self):
        self.value = 1

    def __setstate__(self, state):
        raise RuntimeError("no way back")


losses, last = [], None
for number in rounds():
    losses.append(number)
    last = OneWay()
"""


def test_what_cannot_be_made_again_is_named_and_what_was_made_before_is_there() -> None:
    first = Rounds(range(3))
    run(ONE_WAY, first)
    assert first.saved is not None
    second = Rounds(range(0), data=first.saved.data)
    names = run(ONE_WAY, second)
    assert "no way back" in second.lost["last"]
    assert names["last"] is None
