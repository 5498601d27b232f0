"""The charts of an experiment in the workspace: drawn, read, zoomed, saved, and told by an address."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from browser_parts import TOKEN, Keep, Lab, Opened, Screen, wait_until
from master_answers import MasterAnswers
from playwright.sync_api import Locator, expect
from scripted_experiments import SCRIPT, described, wait_for_end

from det_native.schema.home import Home

pytestmark = [pytest.mark.slow, pytest.mark.long]

AXE = Path(__file__).parents[2] / "jupyter_ext" / "node_modules" / "axe-core" / "axe.min.js"
ODD = "<img src=x onerror=owned=1>"
# What the scripted training logs besides its loss: a name that is markup, values that are none, and media.
LOGS = f"""
        odd = float("nan") if batch_idx % 7 == 3 else float("inf") if batch_idx % 7 == 5 else batch_idx - 20.0
        det.log(**{{"odd": odd, {ODD!r}: 1.0 + batch_idx, "n" * 10_000: 2.0}})
        if batch_idx % 4 == 0:
            det.log_histogram("weights", self.model.weight.detach().numpy() * (1 + batch_idx))
            det.log_text("note", "after " + str(batch_idx))
"""


@pytest.fixture(scope="module")
def search(home: Home, tmp_path_factory: pytest.TempPathFactory) -> int:
    """An experiment of three trials that has ended."""
    folder = tmp_path_factory.mktemp("charts")
    rate = {"type": "categorical", "vals": [0.02, 0.1, 0.3]}
    config = described("charted", batches=60, rate=rate, searcher="grid", pace=0.05)
    script = folder / "train.py"
    script.write_text(SCRIPT.replace("        loss = torch.nn", LOGS + "        loss = torch.nn"))
    ran = subprocess.run(
        [sys.executable, str(script), json.dumps(config)],
        check=True,
        cwd=folder,
        env={**os.environ, "DET_HOME": str(home.path), "TMPDIR": str(folder)},
        stdout=subprocess.PIPE,
        timeout=120,
    )
    return int(ran.stdout.splitlines()[-1])


@pytest.fixture
def charts(opened: Opened, lab: Lab, master: MasterAnswers, search: int) -> tuple[Screen, Locator]:
    """The charts of that experiment, in a tab of JupyterLab."""
    wait_for_end(master, search)
    screen = opened(lab, width=1280, height=1000)
    show(screen, lab, f"/experiments/{search}/charts")
    return screen, screen.page.locator(".det-charts-tab")


def show(screen: Screen, lab: Lab, address: str) -> None:
    screen.page.goto(f"{lab.base}lab?reset&token={TOKEN}&det={quote(address, safe='')}")
    screen.page.locator("#jupyterlab-splash").wait_for(state="detached")
    expect(screen.page.locator(".det-curve-chart .u-over").first).to_be_visible()


def chart(page: Locator, name: str) -> Locator:
    return page.get_by_role("figure", name=name, exact=True)


def violations(screen: Screen, selector: str) -> list[str]:
    screen.page.evaluate(AXE.read_text())
    found: Any = screen.page.evaluate("selector => axe.run(selector)", selector)
    return [f"{each['id']}: {[node['html'][:200] for node in each['nodes']]}" for each in found["violations"]]


def test_curves_are_read_zoomed_and_told_by_an_address(
    charts: tuple[Screen, Locator], lab: Lab, keep: Keep, search: int
) -> None:
    screen, page = charts
    error = chart(page, "error")
    expect(error).to_be_visible()
    assert screen.page.evaluate("window.owned") is None
    keep(screen, "charts")

    over = error.locator(".u-over")
    box = over.bounding_box()
    assert box is not None
    screen.page.mouse.move(box["x"] + box["width"] * 0.5, box["y"] + 60)
    hover = error.locator(".det-curve-hover")
    expect(hover).to_contain_text("Batch")
    expect(hover).to_contain_text("trial 1")
    values = [float(text) for text in hover.locator("td.det-number").all_inner_texts()]
    assert values == sorted(values, reverse=True)
    expect(chart(page, "loss").locator(".det-curve-cursor")).to_be_visible()
    keep(screen, "charts-hover")

    screen.page.mouse.down()
    screen.page.mouse.move(box["x"] + box["width"] * 0.8, box["y"] + 60, steps=5)
    screen.page.mouse.up()
    expect(page.get_by_role("button", name="Reset zoom")).to_be_visible()
    expect(chart(page, "loss").get_by_role("button", name="Show all of loss")).to_be_visible()

    page.get_by_label("Smoothing").select_option("ema")
    page.get_by_label("Log y").check()
    page.get_by_label("X axis").select_option("relative")
    expect(page.get_by_role("button", name="Reset zoom")).to_be_hidden()
    keep(screen, "charts-relative")
    show(screen, lab, f"/experiments/{search}/charts?axis=relative&smooth=ema:0.6&log=y&zoom=0.5:2")
    expect(page.get_by_role("button", name="Reset zoom")).to_be_visible()
    expect(page.get_by_label("Smoothing")).to_have_value("ema")
    expect(page.get_by_label("X axis")).to_have_value("relative")
    expect(page.get_by_label("Log y")).to_be_checked()
    expect(chart(page, "odd")).to_contain_text("at or below zero")
    expect(chart(page, "odd")).to_contain_text("infinite")


def test_the_keyboard_moves_cursor_zoom_and_charts(charts: tuple[Screen, Locator], keep: Keep) -> None:
    screen, page = charts
    loss = chart(page, "loss")
    slider = loss.get_by_role("slider")
    slider.focus()
    screen.page.keyboard.press("Home")
    screen.page.keyboard.press("ArrowRight")
    expect(slider).to_have_attribute("aria-valuetext", re.compile("^Batch .*: trial"))
    screen.page.keyboard.press("+")
    expect(loss.get_by_role("button", name="Show all of loss")).to_be_visible()
    screen.page.keyboard.press("0")
    expect(loss.get_by_role("button", name="Show all of loss")).to_be_hidden()

    titles = page.locator(".det-curve-title")
    before = titles.all_inner_texts()
    page.get_by_role("button", name="Move loss: drag, or arrow keys").focus()
    screen.page.keyboard.press("ArrowLeft")
    wait_until(lambda: titles.all_inner_texts() != before, "the chart has moved")
    page.get_by_role("button", name="Pin odd to the top").click()
    page.get_by_role("heading", name="Pinned").scroll_into_view_if_needed()  # charts out of sight are not drawn
    expect(titles.first).to_have_text("odd")
    assert not violations(screen, ".det-charts-tab")
    screen.set_theme(dark=True)
    keep(screen, "charts-dark")
    assert not violations(screen, ".det-charts-tab")


def test_any_chart_is_saved_as_table_picture_and_vectors(charts: tuple[Screen, Locator], tmp_path: Path) -> None:
    screen, page = charts
    found = {}
    for label, ending in [("CSV", "csv"), ("PNG", "png"), ("SVG", "svg")]:
        chart(page, "error").get_by_role("button", name="More about error").click()
        with screen.page.expect_download() as begun:
            chart(page, "error").get_by_role("menuitem", name=label, exact=True).click()
        assert re.fullmatch(rf"experiment_\d+_error\.{ending}", begun.value.suggested_filename)
        begun.value.save_as(tmp_path / f"error.{ending}")
        found[ending] = (tmp_path / f"error.{ending}").read_bytes()
    head, first, *_ = found["csv"].decode().splitlines()
    assert head.startswith("series,batch,samples,time (interpolated),seconds (interpolated),value")
    assert first.startswith("trial 1")
    assert found["png"].startswith(b"\x89PNG")
    assert int.from_bytes(found["png"][16:20], "big") == 1600
    svg = found["svg"].decode()
    assert svg.count("<path") >= 3
    assert ">batch</text>" in svg
    keep_at = os.environ.get("DET_SCREENSHOTS")
    if keep_at:
        (Path(keep_at) / "error.svg").write_text(svg)
        (Path(keep_at) / "error.png").write_bytes(found["png"])


def test_a_slider_moves_all_that_was_logged(charts: tuple[Screen, Locator], keep: Keep) -> None:
    screen, page = charts
    media = page.get_by_role("region", name="Logged media")
    media.scroll_into_view_if_needed()
    expect(media.locator(".det-histogram-map canvas")).to_be_visible()
    slider = media.get_by_role("slider", name="All at batch")
    slider.focus()
    screen.page.keyboard.press("Home")
    expect(media.locator("pre")).to_have_text("after 0")
    expect(media.get_by_role("button", name="Newest")).to_be_visible()
    keep(screen, "charts-media")
    media.get_by_role("button", name="Newest").click()
    expect(media.locator("pre")).not_to_have_text("after 0")
