"""What functions and objects of a call lead to: saved, and put back in a process that has run the same program."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from det_native.carried.call import CallNames, unwrapped

PROGRAM = """
losses, count, untouched, options = [], 0, [1], {"lr": 0.1}


class Meter:
    made = []

    def __init__(self):
        self.values, self.labels = [], labels

    def add(self, value):
        self.values.append(value)


labels = ["a", "b"]
meter = Meter()


class Watch:
    calls = []

    def __init__(self, meter, out):
        self.meter, self.out = meter, out

    def step(self, loss):
        global count, last
        if loss in untouched:
            return
        count += 1
        last = loss
        losses.append(loss)
        self.meter.add(loss)
        rate = options["lr"]
        self.out.append(rate * loss)
        Watch.calls.append(loss)


def within():
    seen = []
    return seen, lambda loss: seen.append(loss)


out = []
watch = Watch(meter, out)
seen, note = within()
"""


def program() -> dict[str, Any]:
    """The names of a fresh process that has run the program."""
    names: dict[str, Any] = {"__name__": "__main__"}
    exec(PROGRAM, names)  # noqa: S102 (a program of a user's)
    return names


def names_of(there: dict[str, Any], apart: tuple[str, ...] = ()) -> CallNames:
    """What the call of `watch.step` and `note` leads to."""
    roots = {"Watch": there["Watch"], "watch.meter": there["meter"], "watch.out": there["out"], "note": there["note"]}
    return CallNames(roots, {"watch": there["watch"]}, apart, [there["watch"]])


def train(there: dict[str, Any]) -> None:
    for loss in (3.0, 2.0):
        there["watch"].step(loss)
        there["note"](loss)


SEEN = ("losses", "count", "last", "out", "seen")


def test_what_a_call_changes_is_put_back_in_place() -> None:
    worker, here = program(), program()
    saving, loading = names_of(worker), names_of(here)
    before = {name: here[name] for name in ("losses", "meter", "out", "seen", "watch")}
    train(worker)
    assert not loading.brought
    assert not loading.restore(saving.save().data, unless_bound=True)
    assert loading.brought
    assert {name: here[name] for name in SEEN} == {name: worker[name] for name in SEEN}
    assert here["losses"] == [3.0, 2.0]
    assert here["meter"].values == here["Watch"].calls == [3.0, 2.0]
    assert all(here[name] is value for name, value in before.items())


def test_a_name_that_was_bound_meanwhile_stays() -> None:
    worker, here = program(), program()
    saving, loading = names_of(worker), names_of(here)
    train(worker)
    here["count"], mine = 7, []
    before, here["losses"] = here["losses"], mine
    loading.restore(saving.save().data, unless_bound=True)
    assert (here["count"], here["losses"], before) == (7, [], [3.0, 2.0])


def test_only_what_may_change_is_waited_for() -> None:
    here = program()
    names = names_of(here)
    changing = names.may_change()
    for value in (here["losses"], here["meter"], here["meter"].values, here["out"], here["seen"], here["watch"]):
        assert id(value) in changing
    for value in (here["untouched"], here["options"], here["labels"], here["Watch"], here["Meter"], here["note"]):
        assert id(value) not in changing
    assert names.awaited("__main__") == {"count", "last"}
    here["count"] = 3
    assert names.awaited("__main__") == {"last"}


def test_names_that_functions_change_are_known() -> None:
    names = names_of(program())
    assert names.names_changed("__main__") == {"count", "last", "losses"}
    assert not names.names_changed("elsewhere")


def test_what_is_kept_elsewhere_is_referred_to_only() -> None:
    worker, here = program(), program()
    apart = ("watch.meter", "watch.out")
    saving, loading = names_of(worker, apart), names_of(here, apart)
    of_meter = [here["meter"], here["meter"].values, here["labels"]]
    assert list(loading.referred.values()) == of_meter, "objects of the user's classes"
    assert id(here["out"]) in loading.may_change()
    train(worker)
    worker["last"] = [worker["out"], worker["meter"]]
    loading.restore(saving.save().data)
    assert here["out"] == []
    assert here["meter"].values == [3.0, 2.0]
    assert here["last"][0] is here["out"]
    assert here["last"][1] is here["meter"]


@pytest.mark.parametrize("nested", [False, True])
def test_a_method_or_a_partial_function_is_what_it_is_bound_to(nested: bool) -> None:
    there = program()
    watch, note = there["watch"], there["note"]
    given: Any = partial(watch.step, note) if nested else watch.step
    assert list(unwrapped(given)) == [there["Watch"].step, watch, *([note] if nested else [])]
    assert list(unwrapped(note)) == [note]
