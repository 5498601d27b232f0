"""The page of an experiment in JupyterLab: live, with a tab for each of its parts, and what can be done with it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from browser_parts import Keep, Screen, number_in, wait_until
from master_answers import MasterAnswers
from playwright.sync_api import Locator, expect
from scripted_experiments import described, submit, wait_for_end
from view_parts import load_checkpoint, open_page, open_tab, page_of, state_of, type_into

from det_native.client.connect import connect
from det_native.schema.home import Home

pytestmark = pytest.mark.slow

AXE = Path(__file__).parents[2] / "jupyter_ext" / "node_modules" / "axe-core" / "axe.min.js"
RATES = [0.001, 0.2]
# One weight for each of four numbers, all 1 when the sum is learnt.
PREDICT = "import torch\nprint('predicts', round(trial.model(torch.tensor([[0.1, 0.2, 0.3, 0.4]])).item(), 1))"


@pytest.fixture(scope="module")
def search(home: Home, tmp_path_factory: pytest.TempPathFactory) -> int:
    """A finished grid search over the learning rate."""
    rate = {"type": "categorical", "vals": RATES}
    config = described("rates", batches=150, rate=rate, searcher="grid")
    [experiment] = submit(home, tmp_path_factory.mktemp("search"), config)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DET_HOME", str(home.path))
        wait_for_end(connect(start=False), experiment)
    return experiment


def drawn(page: Locator, metric: str) -> str:
    """Return a chart as drawn."""
    chart = page.locator("figure").filter(has_text=re.compile(f"^{metric}")).locator("canvas")
    return str(chart.evaluate("canvas => canvas.toDataURL()"))


def lines_of(log: Locator) -> str:
    """Return the lines of a log that are drawn."""
    return log.get_by_role("log", name="Log lines").inner_text()


def choose(page: Locator, action: str) -> None:
    """Choose what is to be done with an experiment."""
    page.locator(".det-exp-head").get_by_role("button", name="More actions").click()
    page.get_by_role("menuitem", name=action).click()


def accessible(screen: Screen, page: Locator) -> None:
    """Check that axe finds nothing wrong in the page of an experiment."""
    if not screen.page.evaluate("'axe' in window"):
        screen.page.evaluate(AXE.read_text())
    found = page.evaluate(
        "async root => (await window.axe.run(root)).violations.map(each => [each.id, each.nodes[0].html])"
    )
    assert found == []


@pytest.mark.long
def test_overview_checkpoints_and_logs_move_while_it_trains_until_it_is_stopped(
    screen: Screen, home: Home, master: MasterAnswers, tmp_path: Path, keep: Keep
) -> None:
    config = described("moving", batches=6000, pace=0.02, rate=0.01, min_checkpoint_period={"batches": 40})
    [experiment] = submit(home, tmp_path, config)
    screen.open()
    page = open_page(screen, experiment)
    expect(page.locator(".det-chart-title > span")).to_have_text(["error", "loss"])
    expect(page.get_by_role("progressbar")).to_be_visible()
    batches = page.locator("dt:text-is('Batches') + dd")
    picture, batch = drawn(page, "loss"), number_in(batches.inner_text())
    wait_until(lambda: drawn(page, "loss") != picture, "the chart moves")
    wait_until(lambda: number_in(batches.inner_text()) > batch, "the batches move")
    log = open_tab(page, "Logs")
    before = lines_of(log)
    wait_until(lambda: lines_of(log) != before, "the log is followed")
    keep(screen, "page-moving")

    page.get_by_role("button", name="Stop").click()
    screen.page.get_by_role("dialog").get_by_role("button", name="Cancel").click()
    assert master.get(f"/experiments/{experiment}")["state"] == "ACTIVE"
    page.get_by_role("button", name="Stop").click()
    screen.page.get_by_role("dialog").get_by_role("button", name="Stop").click()
    expect(state_of(page)).to_have_text("Stopped")
    assert master.get(f"/experiments/{experiment}")["state"] == "CANCELED"
    expect(page.get_by_role("button", name="Pause")).to_be_hidden()


@pytest.mark.long
def test_each_tab_shows_its_part_and_axe_finds_nothing_wrong(
    search: int, screen: Screen, master: MasterAnswers, keep: Keep
) -> None:
    screen.open()
    page = open_page(screen, search)
    expect(page.locator("h1")).to_have_text("rates")
    expect(page.locator(".det-facts").first).to_contain_text("2 of 2 completed (grid search)")
    accessible(screen, page)
    trials = open_tab(page, "Trials")
    trials.get_by_role("button", name="Best error").click()
    first = trials.locator("tbody tr").first
    expect(first).to_contain_text("0.2")
    first.get_by_role("button").click()
    expect(trials.get_by_role("region", name=re.compile(r"^Trial \d$"))).to_contain_text("learning_rate")
    accessible(screen, page)
    checkpoints = open_tab(page, "Checkpoints")
    row = checkpoints.locator("tbody tr").filter(has_text="best")
    row.get_by_role("button", name="Actions for checkpoint").click()
    row.get_by_role("menuitem", name="Verify").click()
    expect(row).to_contain_text("Whole:")
    accessible(screen, page)
    configuration = open_tab(page, "Configuration")
    expect(configuration.locator("pre")).to_contain_text("scheduling_unit: 10")
    configuration.get_by_label("Show").select_option(label="What is not the default")
    expect(configuration.get_by_role("table")).to_contain_text("searcher.max_length.batches")
    accessible(screen, page)
    log = open_tab(page, "Logs")
    expect(log.get_by_role("log")).to_contain_text("trains batch 149")
    log.get_by_role("searchbox").fill("batch 14")
    expect(log).to_contain_text("11 of ")
    accessible(screen, page)
    code = open_tab(page, "Code")
    code.get_by_text("train.py", exact=False).last.click()
    expect(code.locator("[data-kind=keyword]").first).to_be_visible()
    accessible(screen, page)
    accessible(screen, open_tab(page, "Notes"))
    keep(screen, "page-tabs")


@pytest.mark.long
def test_a_fork_is_made_in_a_form_its_mistakes_are_told_at_their_fields_and_it_is_deleted_in_another_tab(
    search: int, screen: Screen, master: MasterAnswers, keep: Keep
) -> None:
    screen.open()
    page = open_page(screen, search)
    choose(page, "Fork with changes")
    form = screen.page.get_by_role("dialog")
    rate = form.get_by_role("group", name="learning_rate")
    rate.get_by_role("combobox").select_option(label="range")
    form.get_by_role("button", name="Fork").click()
    expect(rate.get_by_role("alert")).to_have_text("From and to are numbers.")
    keep(screen, "page-fork")
    rate.get_by_role("combobox").select_option(label="constant")
    rate.get_by_label("Value").fill("0.05")
    form.locator("details", has_text="Searcher").get_by_label("Max length").fill("20")
    form.get_by_label("Name").first.fill("forked in the page")
    accessible(screen, form)
    form.get_by_role("button", name="Fork").click()
    expect(screen.page.locator(".det-exp h1").last).to_have_text("forked in the page")
    [made] = [each for each in master.get("/experiments") if each["name"] == "forked in the page"]
    assert made["forked_from"] == search
    assert made["config"]["hyperparameters"]["learning_rate"] == {"type": "const", "val": 0.05}
    assert made["config"]["searcher"]["max_length"] == {"batches": 20}
    fork = page_of(screen, made["id"])
    wait_for_end(master, made["id"])
    expect(state_of(fork)).to_have_text("Completed")
    master.delete(f"/experiments/{made['id']}")  # as from another tab
    expect(screen.page.get_by_text(f"Experiment {made['id']} was deleted.")).to_be_visible()


@pytest.mark.long
def test_notes_are_written_in_markdown_and_a_conflict_of_two_tabs_is_told(
    search: int, screen: Screen, master: MasterAnswers
) -> None:
    screen.open()
    notes = open_tab(open_page(screen, search), "Notes")
    notes.get_by_role("button", name="Write notes").click()
    notes.get_by_role("textbox").fill("# Mine\n\n**bold** <img src=x onerror='window.owned=1'>")
    notes.get_by_role("button", name="Save").click()
    expect(notes.locator("strong")).to_have_text("bold")
    assert notes.locator("img").count() == 0
    assert screen.page.evaluate("window.owned") is None
    notes.get_by_role("button", name="Edit").click()
    notes.get_by_role("textbox").fill("mine, later")
    master.patch(f"/experiments/{search}", {"notes": "theirs"})
    notes.get_by_role("button", name="Save").click()
    expect(notes.get_by_role("alert")).to_contain_text("Somebody else has changed these notes meanwhile.")
    notes.get_by_role("button", name="Put both together").click()
    notes.get_by_role("button", name="Save").click()
    expect(notes.locator(".det-exp-markdown")).to_contain_text("theirs")
    assert master.get(f"/experiments/{search}")["notes"] == "theirs\n\nmine, later"


def test_load_into_notebook_inserts_a_cell_that_gives_a_trained_model(
    screen: Screen, home: Home, master: MasterAnswers, tmp_path: Path, keep: Keep
) -> None:
    [experiment] = submit(home, tmp_path, described("to load", batches=150, rate=0.2))
    wait_for_end(master, experiment)
    screen.open()
    page = open_page(screen, experiment)
    load_checkpoint(open_tab(page, "Checkpoints").locator("tbody tr").filter(has_text="best"))
    expect(screen.page.locator(".jp-Dialog")).to_contain_text("No notebook is open")
    screen.page.get_by_role("button", name="New notebook").click()
    expect(screen.cell(0)).to_contain_text("checkpoint.load()")
    expect(screen.cell(0)).to_contain_text("import det_native as det")
    screen.wait_for_kernel()
    screen.run(0)
    type_into(screen, 1, PREDICT)
    screen.run(1)
    expect(screen.cell(1).locator(".jp-OutputArea-output")).to_have_text("predicts 1.0")
    keep(screen, "page-loaded")

    screen.cell(0).locator(".cm-content").click()
    page = open_page(screen, experiment)
    load_checkpoint(page.locator(".det-exp-tab"))
    expect(screen.cell(1)).to_contain_text(f"det.attach({experiment}).checkpoint(")
    expect(screen.cell(1)).not_to_contain_text("import det_native")
    screen.run(1)
    expect(screen.cell(1).locator(".jp-OutputArea-output")).to_have_count(0)
