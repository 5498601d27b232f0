"""What a trial uses of its machine, on the page and under a cell: as it trains, on many GPUs, and of old runs."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

import pytest
from browser_parts import Keep, Lab, Opened, Screen, wait_until
from master_answers import MasterAnswers
from playwright.sync_api import Route, expect
from scripted_experiments import described, submit, wait_for_end
from training_notebook import training_cells, write_notebook
from view_parts import open_page, open_tab, section

from det_native.schema.home import Home

pytestmark = pytest.mark.slow

BEGIN = 1_800_000_000


def of_gpus(ranks: int) -> list[dict[str, Any]]:
    """Return an hour of a trial that trains on so many GPUs, and that waited for ten minutes in the middle."""
    found = []
    for step in [*range(120), *range(240, 600)]:
        for rank in range(ranks):
            wave = math.sin(step / 20 + rank)
            metrics = {
                "cpu_percent": 210 + 60 * wave,
                "memory_bytes": 3.1e9 + 2e6 * step,
                "gpu0_percent": 88 + 10 * wave,
                "gpu0_memory_bytes": 41e9 + 1e9 * rank,
                "disk_read_bytes_per_second": 4e7 * max(0.0, wave),
                "disk_write_bytes_per_second": 9e8 if step % 100 == 0 else 0.0,
            }
            if rank == 0:
                metrics |= {"network_received_bytes_per_second": 6e7, "network_sent_bytes_per_second": 5e7}
            found.append({"time": BEGIN + 6 * step + rank / 10, "rank": rank, "metrics": metrics})
    return found


@pytest.mark.long
def test_the_page_shows_what_a_trial_uses(
    opened: Opened, lab: Lab, master: MasterAnswers, home: Home, tmp_path: Path, keep: Keep
) -> None:
    config = described("uses its machine", batches=40, pace=0.02, profiling={"period": 0.1})
    [number] = submit(home, tmp_path, config)
    wait_for_end(master, number)
    screen = opened(lab, height=1300)
    screen.open()
    page = open_page(screen, number)
    system = open_tab(page, "System")
    expect(system.locator("summary")).to_have_text(
        re.compile(r"^System: CPU [\d.]+ % on average, memory at most [\d.]+ [MG]B$")
    )
    titles = system.locator("figcaption")
    expect(titles.nth(0)).to_have_text("CPU")
    expect(titles.nth(1)).to_have_text("Memory")
    expect(titles.last).to_have_text("Network of the machine")
    values = system.locator("figure").nth(1).locator(".det-legend b")
    expect(values).to_have_text(re.compile(r"^[\d.]+ [MG]B$"))
    assert master.get(f"/trials/{master.get(f'/experiments/{number}/trials')[0]['id']}/system")
    box = system.locator("svg").nth(1).bounding_box()
    assert box is not None
    screen.page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    expect(system.locator(".det-legend-batch").nth(1)).to_have_text(re.compile(r"^\d+ s$"))
    keep(screen, "system-page")

    screen.page.route(re.compile(r"trials/\d+/system"), lambda route: route.fulfill(json=of_gpus(4)))
    screen.open()
    page = open_page(screen, number)
    system = open_tab(page, "System")
    expect(system.locator("summary")).to_contain_text("GPU memory at most 170 GB")
    expect(titles).to_have_text(["CPU", "Memory", "GPU", "GPU memory", "Disk", "Network of the machine"])
    expect(system.locator("figure").nth(2).locator(".det-legend-entry")).to_have_count(4)
    expect(system.locator("figure").nth(2).locator("path")).to_have_count(8)  # each with the gap of the wait
    system.scroll_into_view_if_needed()
    keep(screen, "system-gpus")

    def old(route: Route) -> None:
        route.fulfill(status=404, body=json.dumps({"error": "There is no such route."}))

    screen.page.unroute(re.compile(r"trials/\d+/system"))
    screen.page.route(re.compile(r"trials/\d+/system"), old)
    screen.open()
    page = open_page(screen, number)
    expect(page.locator(".det-tab", has_text="Logs")).to_be_visible()
    expect(page.locator(".det-tab", has_text="System")).to_have_count(0)


@pytest.mark.soak
def test_under_a_cell_it_is_folded_and_goes_on_while_it_trains(screen: Screen, lab: Lab, keep: Keep) -> None:
    screen.open(write_notebook(lab.root / "system.ipynb", *training_cells()))
    screen.run_all(3)
    view = screen.cell(2).locator(".det-view").first
    system = section(view, "System")
    summary = system.locator("summary")

    def told() -> str:
        screen.show(2)
        return summary.inner_text() if summary.is_visible() else ""

    wait_until(lambda: re.match(r"System: CPU [\d.]+ %, memory [\d.]+ [MG]B", told()) is not None, "it is told")
    expect(system.locator("svg").first).to_be_hidden()
    keep(screen, "system-folded")
    summary.click()
    expect(system.locator("figcaption").first).to_have_text("CPU")
    time = system.locator("svg").first.locator("text").nth(1)
    before = time.text_content()
    wait_until(lambda: time.text_content() != before, "it goes on")
    system.scroll_into_view_if_needed()
    keep(screen, "system-cell")
