"""The Search tab in JupyterLab, of a search that has trained: of nine trials, and of five hundred."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from browser_parts import Keep, Lab, Opened
from master_answers import MasterAnswers
from playwright.sync_api import Route, expect
from scripted_experiments import described, submit, wait_for_end
from view_parts import open_page, open_tab

from det_native.schema.home import Home

pytestmark = [pytest.mark.slow, pytest.mark.long]


def many(trials: list[dict[str, Any]], count: int) -> list[dict[str, Any]]:
    """Return so many trials, made of those that there are."""
    found = []
    for number in range(count):
        one = dict(trials[number % len(trials)])
        rate = 10 ** (-4 + 4 * ((number * 37) % count) / count)
        value = (rate - 0.05) ** 2 + 0.01 + (number % 7) / 300
        ended = f"2026-11-20T12:{number * 59 // count:02}:30.000Z"
        hparams = {**one["hparams"], "learning_rate": rate, "broken": number % 3 == 0}
        one |= {"id": number + 1, "hparams": hparams, "best_validation": value, "state": "COMPLETED"}
        found.append(one | {"created": "2026-11-20T12:00:00.000Z", "ended": ended})
    return found


def test_a_search_is_seen(
    opened: Opened, lab: Lab, master: MasterAnswers, home: Home, tmp_path: Path, keep: Keep
) -> None:
    rate = {"type": "log", "base": 10, "minval": -3, "maxval": -0.5}
    searcher = {"name": "async_halving", "max_trials": 9, "num_rungs": 3, "divisor": 3}
    config = described("seen", batches=90, rate=rate)
    config["searcher"] |= searcher
    config["hyperparameters"]["pace"] = {"type": "double", "minval": 0.0, "maxval": 0.001}
    [number] = submit(home, tmp_path, config)
    wait_for_end(master, number)
    screen = opened(lab, height=1500)
    screen.open()
    search = open_tab(open_page(screen, number), "Search")
    for name in ("Best so far", "Parallel coordinates", "learning_rate", "While the trials train"):
        expect(search.get_by_role("figure", name=name, exact=True)).to_be_visible()
    stages = search.get_by_role("figure", name="While the trials train")
    expect(stages).to_contain_text("stages at which the search decides")
    assert any(len(trial["stages"]) > 1 for trial in master.get(f"/experiments/{number}/trials"))
    expect(search.get_by_text("9 of 9 trials")).to_be_visible()
    keep(screen, "search-nine")

    def answer(route: Route) -> None:
        found = json.loads(route.fetch().text())
        route.fulfill(json=many(found, 500))

    screen.page.route(re.compile(rf"experiments/{number}/trials"), answer)
    screen.page.route(re.compile(r"trials/\d+/logs"), lambda route: route.fulfill(json=[]))
    screen.open()
    search = open_tab(open_page(screen, number), "Search")
    expect(search.get_by_text("500 of 500 trials")).to_be_visible()
    keep(screen, "search-five-hundred")
