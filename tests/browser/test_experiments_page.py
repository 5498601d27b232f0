"""The page of experiments over a real master with 10,000 of them: found, sorted, grouped, changed, quick."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browser_masters import start_master, stop_master
from playwright.sync_api import Page, expect
from sqlalchemy import text

from det_native.master.store.database import Database
from det_native.schema.home import Home

sys.path.append(str(Path(__file__).parents[1] / "master" / "load"))

from load_home import fill

COUNT = 10_000
AXE = Path(__file__).parents[2] / "jupyter_ext" / "node_modules" / "axe-core" / "axe.min.js"
HOSTILE = "<img src=x onerror=window.hurt=1>"

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    """The home of a master with very many experiments that differ."""
    home = Home(tmp_path_factory.mktemp("many") / "home")
    fill(home.path, COUNT)
    database = Database(f"sqlite:///{home.path / 'det.db'}")
    with database.write() as transaction:
        for statement in (
            "UPDATE experiments SET name = 'digits ' || (id % 12), best_trial = id, best_validation = id / 1000.0, "
            "labels = CASE WHEN id % 3 = 0 THEN '[\"baseline\"]' ELSE '[]' END, archived = id % 50 = 0",
            "UPDATE trials SET hparams = '{\"lr\":' || ((id % 5) / 100.0) || '}'",
            f"UPDATE experiments SET name = '{HOSTILE * 300}' WHERE id = {COUNT - 1}",
        ):
            transaction.connection.execute(text(statement))
    database.close()
    start_master(home)
    yield home
    stop_master(home)


@pytest.fixture
def page(master_page: Page) -> Page:
    """A window with the page of experiments."""
    expect(master_page.get_by_text(re.compile("9,(800|799) experiments"))).to_be_visible()  # a test deletes one
    return master_page


def violations(page: Page) -> list[str]:
    """Return what axe-core has to say against the page."""
    page.evaluate(AXE.read_text())
    found: dict[str, Any] = page.evaluate("axe.run('.det-app', {resultTypes: ['violations']})")
    return [f"{each['id']}: {[node['html'][:200] for node in each['nodes'][:3]]}" for each in found["violations"]]


def test_experiments_are_searched_sorted_and_opened(page: Page) -> None:
    box = page.get_by_role("combobox", name="Search experiments")
    box.fill("label:baseline and lr > 0.03")
    box.press("Enter")
    expect(page.get_by_text("667 experiments")).to_be_visible()
    page.get_by_role("button", name="Best value").click()
    expect(page.get_by_role("row").nth(1)).to_contain_text("0.009 loss")
    page.reload()
    expect(page.get_by_text("667 experiments")).to_be_visible()
    expect(page.get_by_role("row").nth(1)).to_contain_text("0.009 loss")
    box.fill("lr > and")
    box.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("does not parse at character 6")
    box.fill("")
    box.press("Enter")
    expect(page.get_by_text("9,800 experiments")).to_be_visible()
    assert page.evaluate("window.hurt") is None
    page.get_by_role("row").nth(3).click()
    page.wait_for_url("**#/experiments/*")


def test_groups_have_means_and_open(page: Page) -> None:
    page.get_by_role("combobox", name="Group by").select_option("hp:lr")
    expect(page.get_by_text("9,800 experiments · 5 groups")).to_be_visible()
    group = page.get_by_role("row").filter(has_text="1,800 experiments").first
    expect(group).to_contain_text("mean 0.02")
    group.click()
    expect(page.get_by_role("row").filter(has_text="digits").first).to_be_visible()
    assert violations(page) == []


def test_several_are_labelled_and_what_is_refused_is_listed(page: Page) -> None:
    page.get_by_role("row").nth(2).get_by_role("checkbox").click()
    page.get_by_role("row").nth(5).get_by_role("checkbox").click(modifiers=["Shift"])
    expect(page.get_by_text("4 experiments selected")).to_be_visible()
    page.get_by_role("button", name="Labels…").click()
    page.get_by_role("combobox", name="Add").fill("chosen")
    page.get_by_role("button", name="Change labels").click()
    expect(page.get_by_text("Labelled 4 experiments.")).to_be_visible()
    expect(page.get_by_role("row").nth(3)).to_contain_text("chosen")
    page.get_by_role("button", name="Clear selection").click()
    page.get_by_role("row").nth(2).click(button="right")
    page.get_by_role("menuitem", name="Delete…").click()
    expect(page.get_by_role("dialog")).to_contain_text("This frees")
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(page.get_by_text("9,799 experiments")).to_be_visible()


def test_a_view_is_found_again_after_a_reload(page: Page) -> None:
    page.get_by_role("button", name="State", exact=True).first.click()
    page.get_by_role("menuitemcheckbox", name="Failed").click()
    expect(page.get_by_role("button", name="Remove State: Failed")).to_be_visible()
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Views").click()
    page.get_by_role("textbox", name="Save what is shown as").fill("Failed ones")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("The view Failed ones is saved.")).to_be_visible()
    page.goto(page.url.split("#")[0] + "#/experiments")
    page.reload()
    expect(page.get_by_role("button", name="Remove State: Failed")).to_be_hidden()
    page.get_by_role("button", name="Views").click()
    page.get_by_role("button", name="Failed ones", exact=True).click()
    expect(page.get_by_role("button", name="Remove State: Failed")).to_be_visible()


@pytest.mark.parametrize("width", [1280, 600, 390])
def test_nothing_is_wrong_for_screen_readers_and_nothing_is_cut_off(page: Page, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 800})
    expect(page.get_by_role("row").nth(2)).to_be_visible()
    assert violations(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.get_by_role("row").nth(2).get_by_role("checkbox").click()
    expect(page.get_by_text("1 experiment selected")).to_be_visible()
    assert violations(page) == []


@pytest.mark.soak
def test_the_table_is_there_at_once_and_scrolls_without_much_work(
    page: Page, capsys: pytest.CaptureFixture[str]
) -> None:
    """Time of the page's own thread is measured: that of others on the machine does not count."""
    devtools = page.context.new_cdp_session(page)
    devtools.send("Performance.enable")

    def busy() -> float:
        found = {each["name"]: each["value"] for each in devtools.send("Performance.getMetrics")["metrics"]}
        return float(found["ScriptDuration"])

    page.reload()
    expect(page.get_by_role("row").nth(2)).to_contain_text("digits")
    first = page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime")
    listed = page.evaluate(
        "performance.getEntriesByType('resource').find(each => each.name.includes('experiment-list')).responseEnd"
    )
    before, frames = busy(), 200
    times = page.evaluate(
        """frames => new Promise(done => {
            const table = document.querySelector('.det-list-table');
            const times = [];
            let last = performance.now();
            const step = now => {
                times.push(now - last);
                last = now;
                table.scrollTop += 120;
                times.length < frames ? requestAnimationFrame(step) : done(times.sort((a, b) => a - b));
            };
            requestAnimationFrame(step);
        })""",
        frames,
    )
    script = 1000 * (busy() - before) / frames
    with capsys.disabled():
        told = {"first paint": first, "list": listed, "frame": times[frames // 2], "script per frame": script}
        print("\n" + json.dumps({name: round(value, 1) for name, value in told.items()}))
    assert script < 8  # of the 16.7 ms that a frame has
    page.evaluate("document.querySelector('.det-list-table').scrollTop = 200000")
    expect(page.locator(".det-list-bar")).to_have_count(0)
    assert page.evaluate("document.querySelectorAll('.det-list-row').length") < 60
