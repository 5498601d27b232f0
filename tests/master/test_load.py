"""A master under load: nothing that was reported is lost, no request fails, and its memory does not grow.

Workers report by the harness's own reporter over the master's socket, views read its events and ask what the front end
asks; each in processes of their own. ``DET_LOAD_SECONDS`` says how long the full load lasts (600 by default, 3600 for
an hour), ``DET_LOAD_P99_MS`` what a request may take where the machine is quiet, ``DET_LOAD_DATABASE`` the URL of an
empty database instead of SQLite.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from figures import note

from det_native.schema import routes

sys.path.append(str(Path(__file__).parent / "load"))

from load_home import fill
from load_run import Figures, LoadedMaster, load, loaded_master, setting
from load_workers import loss_of

pytestmark = pytest.mark.slow

VALIDATED_EVERY = 100
#: What a master may take in all.
MOST_MIB = 400.0
#: The caches of a master (events, pages of the database, ends of series) fill in the first minutes.
SETTLED_SECONDS = 600.0
MOST_MIB_PER_HOUR = 60.0


def assert_complete(master: LoadedMaster, figures: Figures) -> None:
    """Every row that was reported is there, once, with its value."""
    assert figures.errors == []
    for trial_id, rows in figures.rows.items():
        stored = master.session.call(routes.GET_METRICS, trial_id=trial_id, limit=100_000)
        while rows > len(stored) and (
            more := master.session.call(
                routes.GET_METRICS, trial_id=trial_id, limit=100_000, after_batch=stored[-1].batch
            )
        ):
            stored += more
        assert [row.batch for row in stored] == list(range(1, rows + 1))
        assert [row.metrics["loss"] for row in stored] == [loss_of(trial_id, row.batch) for row in stored]
        validations = master.session.call(routes.GET_METRICS, trial_id=trial_id, kind="validation")
        assert len(validations) == rows // VALIDATED_EVERY


def loaded(
    folder: Path, *, workers: int, queued: int, ended: int, views: int, panels: int, seconds: float, processes: int
) -> Figures:
    """Load a master, see that nothing is lost, and note the figures."""
    home, url = folder / "home", os.environ.get("DET_LOAD_DATABASE")
    fill(home, ended, url)
    with loaded_master(home, workers, url) as master:
        master.submit(workers)
        runs = master.runs(workers)
        before = master.processor_seconds()
        submitted = master.submit(queued)
        calm = master.until_calm()
        queueing = master.processor_seconds() - before
        figures = load(master, folder, runs, views=views, panels=panels, seconds=seconds, processes=processes)
        assert_complete(master, figures)
    with loaded_master(home, workers, url) as master:
        seconds_to_go_on = master.until_calm()
        restarting = master.processor_seconds()
    note(
        "load",
        workers=workers,
        queued=queued,
        ended=ended,
        views=views,
        seconds=round(figures.seconds),
        restart_seconds=round(master.seconds_to_start, 2),
        restart_calm_seconds=round(seconds_to_go_on, 2),
        restart_processor_seconds=round(restarting, 2),
        submit_processor_ms=round(1000 * queueing / max(len(submitted), 1), 1),
        calm_seconds=round(calm, 2),
        processor_share=round(figures.processor, 3),
        rows_per_second=round(sum(figures.rows.values()) / figures.seconds),
        events_per_view_second=round(figures.events / max(views, 1) / figures.seconds, 1),
        memory_mib=[round(figures.memory[0][1]), round(figures.memory[-1][1])],
        slope_mib_per_hour=round(figures.slope, 1),
        requests=figures.summary(),
        machine_load=round(os.getloadavg()[0], 1),
    )
    return figures


@pytest.mark.long
@pytest.mark.timeout(600)
def test_a_small_load_loses_nothing(tmp_path: Path) -> None:
    figures = loaded(tmp_path, workers=10, queued=100, ended=1_000, views=5, panels=1, seconds=10, processes=1)
    assert figures.memory[-1][1] < MOST_MIB
    assert min(figures.rows.values()) > 0
    assert figures.events > 0
    # Whatever else the machine does.
    assert all(figures.percentile(kind, 0.99) < 30_000 for kind in figures.times)


@pytest.mark.soak
@pytest.mark.timeout(3 * 3600)
def test_a_full_load_loses_nothing_and_takes_no_more_memory(tmp_path: Path) -> None:
    seconds = setting("DET_LOAD_SECONDS", 600)
    figures = loaded(
        tmp_path, workers=100, queued=1_000, ended=10_000, views=50, panels=1, seconds=seconds, processes=2
    )
    assert figures.memory[-1][1] < MOST_MIB
    if seconds >= SETTLED_SECONDS:
        assert figures.slope < MOST_MIB_PER_HOUR
    # A master that takes a core for itself answers nobody in time, however quiet the machine is.
    assert figures.processor < 0.8
    limit = setting("DET_LOAD_P99_MS", 30_000)
    for kind in ("list", "describe", "series", "report"):
        assert figures.percentile(kind, 0.99) < limit
