"""The page of a search: the best so far, rungs, values of hyperparameters; of nine trials, and of five hundred."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from browser_parts import Keep, Lab, Opened
from playwright.sync_api import Route, expect
from scripted_experiments import described, submit, wait_for_end
from view_parts import open_page, section

from det_native.client.session import Session
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


def test_a_search_is_seen(opened: Opened, lab: Lab, master: Session, home: Home, tmp_path: Path, keep: Keep) -> None:
    rate = {"type": "log", "base": 10, "minval": -3, "maxval": -0.5}
    searcher = {"name": "async_halving", "max_trials": 9, "num_rungs": 3, "divisor": 3}
    config = described("seen", batches=90, rate=rate)
    config["searcher"] |= searcher
    config["hyperparameters"]["pace"] = {"type": "double", "minval": 0.0, "maxval": 0.001}
    [number] = submit(home, tmp_path, config)
    wait_for_end(master, number)
    screen = opened(lab, height=1500)
    screen.open()
    page = open_page(screen, number)
    search = section(page, "Search")
    titles = search.locator(".det-search-panel > figcaption")
    expect(titles).to_have_text(["Best so far", "Rungs", "learning_rate", "pace", "All values"])
    expect(search.locator(".det-rung-length")).to_have_text(["90 batches", "30 batches", "10 batches"])
    rungs = search.locator(".det-rung-counts").all_inner_texts()
    counts = " ".join(rungs)
    promoted, finished, stopped = (
        sum(map(int, re.findall(rf"(\d+) {word}", counts))) for word in ("promoted", "finished", "stopped")
    )
    assert finished >= 1
    assert finished + stopped == 9
    assert promoted == sum(len(trial["stages"]) - 1 for trial in master.get(f"/experiments/{number}/trials"))
    expect(search.locator(".det-search-line")).to_have_count(9)
    best = search.locator(".det-search-told").inner_text()
    assert best.startswith("Best: trial ")
    search.locator("circle:not(.det-best)").first.hover()
    expect(search.locator(".det-search-told")).not_to_have_text(best)
    keep(screen, "search-nine")

    def answer(route: Route) -> None:
        trials = json.loads(route.fetch().text())
        route.fulfill(json=many(trials, 500))

    screen.page.route(re.compile(rf"experiments/{number}/trials"), answer)
    screen.page.route(re.compile(r"trials/\d+/logs"), lambda route: route.fulfill(json=[]))
    screen.open()
    page = open_page(screen, number)
    search = section(page, "Search")
    expect(search.locator(".det-search-line")).to_have_count(500)
    keep(screen, "search-five-hundred")
