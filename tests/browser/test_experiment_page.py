"""The page of an experiment in JupyterLab: live charts, trials, logs, and checkpoints that load into a notebook."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from browser_parts import Keep, Screen, number_in, wait_until
from playwright.sync_api import Locator, expect
from scripted_experiments import described, submit, wait_for_end
from view_parts import batches_of, open_page, section, type_into

from det_native.client.connect import connect
from det_native.client.session import Session
from det_native.schema.home import Home

pytestmark = pytest.mark.slow

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


def at_end(log: Locator) -> bool:
    """Whether the last line of the log is seen."""
    return bool(log.evaluate("log => log.scrollTop + log.clientHeight >= log.scrollHeight - 8"))


@pytest.mark.long
def test_charts_logs_and_checkpoints_move_while_it_trains(
    screen: Screen, home: Home, master: Session, tmp_path: Path, keep: Keep
) -> None:
    config = described("moving", batches=6000, pace=0.02, rate=0.01, min_checkpoint_period={"batches": 40})
    [experiment] = submit(home, tmp_path, config)
    screen.open()
    page = open_page(screen, experiment)
    expect(page.locator(".det-chart-title > span")).to_have_text(["error", "loss"])
    pictures = {metric: drawn(page, metric) for metric in ("error", "loss")}
    checkpoints = section(page, "Checkpoints").locator("summary")
    log = section(page, "Log").locator(".det-log")
    written, batch = number_in(checkpoints.inner_text()), batches_of(page)
    last_line = log.inner_text().strip().splitlines()[-1]
    for metric, picture in pictures.items():
        wait_until(lambda m=metric, p=picture: drawn(page, m) != p, f"the chart of {metric} moves")  # type: ignore[misc]
    wait_until(lambda: number_in(checkpoints.inner_text()) > written, "a checkpoint comes into the list")
    wait_until(lambda: batches_of(page) > batch, "the progress moves")
    wait_until(lambda: log.inner_text().strip().splitlines()[-1] != last_line, "the log grows")
    assert number_in(log.inner_text().strip().splitlines()[-1]) > number_in(last_line)
    assert at_end(log), "the newest line is seen"
    expect(page.get_by_role("progressbar")).to_be_visible()
    keep(screen, "page-moving")

    page.get_by_role("button", name="Stop").click()
    screen.page.locator(".jp-Dialog").get_by_role("button", name="Stop", exact=True).click()
    expect(page.locator(".det-badge")).to_have_text("Stopped")
    assert master.get(f"/experiments/{experiment}")["state"] == "CANCELED"
    expect(page.get_by_role("button", name="Pause")).to_be_hidden()


@pytest.mark.long
def test_trials_are_told_apart_their_logs_are_read_and_the_page_comes_back_with_the_workspace(
    search: int, screen: Screen, master: Session, keep: Keep
) -> None:
    screen.open()
    page = open_page(screen, search)
    tells_trials_apart(page, search, master)
    keep(screen, "page-search")
    reads_every_log_to_its_begin(page, search, master)
    keep(screen, "page-log")

    plain = drawn(page, "error")
    page.get_by_role("button", name="Logarithmic scale for error").click()
    wait_until(lambda: drawn(page, "error") != plain, "the scale changes")
    # JupyterLab saves its layout a moment after a change, and says so to its server.
    layout = wait_until(lambda: screen.lab.request("GET", "lab/api/workspaces/default"), "the layout is saved")
    wait_until(
        lambda: f"det-native-experiment:{search}" in screen.lab.request("GET", "lab/api/workspaces/default").text,
        f"the page is in the saved layout {layout.text}",
    )
    screen.open(reset=False)
    expect(page.locator(".det-title")).to_have_text(f"Experiment {search}")
    expect(page.locator(".det-chart canvas").first).to_be_visible()


def tells_trials_apart(page: Locator, search: int, master: Session) -> None:
    """Check the table of trials, and that the best is marked wherever trials are told."""
    trials = section(page, "Trials")
    expect(trials.locator("summary")).to_have_text("Trials (2)")
    expect(trials.locator("tbody tr")).to_have_count(2)
    page.page.emulate_media(forced_colors="active")
    swatches = page.locator(".det-chart").first.locator(".det-swatch")
    colours = swatches.evaluate_all("all => all.map(each => getComputedStyle(each).borderTopColor)")
    assert len(set(colours)) == 2, "where the system chooses the colours, the legend still has those of the lines"
    page.page.emulate_media(forced_colors="none")
    known = {trial["number"]: trial for trial in master.get(f"/experiments/{search}/trials")}
    for row in trials.locator("tbody tr").all():
        number, state, batches, best, hparams = row.locator("td").all_inner_texts()
        trial = known.pop(int(number))
        assert (state, batches) == ("Completed", "150 / 150")
        assert float(best) == pytest.approx(trial["best_validation"], rel=1e-2)
        assert f"learning_rate={trial['hparams']['learning_rate']}" in hparams
    expect(trials.locator(".det-emphasised")).to_contain_text("learning_rate=0.2")
    expect(page.locator(".det-facts")).to_contain_text("grid search, 2 of 2 trials done")
    expect(page.locator(".det-legend").first).to_contain_text("(best)")
    expect(section(page, "Checkpoints").locator(".det-emphasised")).to_contain_text("(best)")
    expect(section(page, "Log").locator(".det-log")).to_contain_text("trains batch 149")


def reads_every_log_to_its_begin(page: Locator, search: int, master: Session) -> None:
    """Check that the log of any trial shows its end, and by and by all lines before that."""
    log = section(page, "Log")
    lines, choice = log.locator(".det-log"), log.get_by_role("combobox", name="Trial whose log is shown")
    for trial in master.get(f"/experiments/{search}/trials"):
        choice.select_option(label=f"Trial {trial['number']}: Completed")
        expect(log.locator("summary")).to_have_text(f"Log of trial {trial['number']}")
        expect(lines).to_contain_text("trains batch 149")
        assert at_end(lines), "the newest line is seen"
        assert "trains batch 10\n" not in lines.inner_text(), "only the end is loaded"
        first = lines.inner_text().splitlines()[0]
        lines.evaluate("log => { log.scrollTop = 0; }")
        wait_until(lambda: "trains batch 10\n" in lines.inner_text(), "the earlier lines are loaded")
        assert lines.evaluate("log => log.scrollTop") > 0, "what was read stays in its place"
        written = [line["text"] for line in master.get(f"/trials/{trial['id']}/logs")]
        assert lines.inner_text().strip().splitlines() == written, "no line is missing or there twice"
        assert first in written
        expect(log.get_by_role("button", name="Earlier lines")).to_be_hidden()


def test_load_into_notebook_inserts_a_cell_that_gives_a_trained_model(search: int, screen: Screen, keep: Keep) -> None:
    screen.open()
    page = open_page(screen, search)
    best = section(page, "Checkpoints").locator(".det-emphasised").get_by_role("button")
    best.click()
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
    open_page(screen, search)
    section(page, "Checkpoints").get_by_role("button", name="Load checkpoint").first.click()
    expect(screen.cell(1)).to_contain_text(f"det.attach({search}).checkpoint(")
    expect(screen.cell(1)).not_to_contain_text("import det_native")
    screen.run(1)
    expect(screen.cell(1).locator(".jp-OutputArea-output")).to_have_count(0)
