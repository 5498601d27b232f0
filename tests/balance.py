"""How the tests are divided among the processes of pytest-xdist: by file, by measured time, folder by folder.

A file is never divided. A process stays in the folder that it has begun, because the tests of a folder share what is
dear to start (a master, a JupyterLab, a browser) within a process. Where no folder is left that nobody has begun, it
helps in the folder with the most work left. In all of these, what takes longest comes first.

The times are those of ``durations.json``, by lane (what ``-m`` says) and file; ``pytest --note-times`` writes those of
the files that are run. A run ends with the names of its files that have no time yet; each counts with a guess.

``--part 2/4`` runs a part of a lane: what is too long for one landing is shared out among several of them.
"""

from __future__ import annotations

import argparse
import json
import zlib
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

DURATIONS = Path(__file__).with_name("durations.json")
SHOWN = 30
_UNKNOWN = 5.0


def folder_of(file: str) -> str:
    """Return the folder of a file, which is named with slashes."""
    return file.rpartition("/")[0]


def next_file(waiting: Iterable[str], begun: Mapping[str, set[str]], process: str, times: Mapping[str, float]) -> str:
    """Choose what a process does next.

    Parameters
    ----------
    waiting : iterable of str
        The files that nobody has begun; at least one.
    begun : mapping of str to set of str
        The folders that each process has begun.
    process : str
        The one that asks.
    times : mapping of str to float
        Seconds by file.

    Returns
    -------
    str
        One of `waiting`.
    """
    work = Counter[str]()
    files = list(waiting)
    for file in files:
        work[folder_of(file)] += times.get(file, _UNKNOWN)  # type: ignore[assignment]
    everybodys = set().union(*begun.values())
    own = begun.get(process, set()) & work.keys()
    fresh = work.keys() - everybodys
    folders = own or fresh or set(work)
    folder = max(folders, key=lambda name: (work[name], name))
    return max(
        (file for file in files if folder_of(file) == folder), key=lambda file: (times.get(file, _UNKNOWN), file)
    )


def read_times(path: Path = DURATIONS) -> dict[str, dict[str, float]]:
    """Return the seconds by lane and file; of a file that is not there, none."""
    if not path.exists():
        return {}
    times: dict[str, dict[str, float]] = json.loads(path.read_text())
    return times


def note_times(noted: dict[str, dict[str, float]], lane: str, seconds: Mapping[str, float]) -> None:
    """Write the seconds of files of a lane into ``durations.json``, and leave out files that are gone."""
    times = noted.get(lane, {}) | {file: round(taken, 1) for file, taken in seconds.items()}
    root = DURATIONS.parents[1]
    present = {file: times[file] for file in sorted(times) if (root / file).exists()}
    DURATIONS.write_text(json.dumps(noted | {lane: present}, indent=0) + "\n")


def part_of(file: str, parts: int) -> int:
    """Return in which of so many parts a file is: 1, 2, and so on."""
    return zlib.crc32(file.encode()) % parts + 1


def _part(text: str) -> tuple[int, int]:
    """Read ``2/4``."""
    number, _, parts = text.partition("/")
    if not (number.isdigit() and parts.isdigit() and 1 <= int(number) <= int(parts)):
        raise argparse.ArgumentTypeError(f'{text!r} does not name a part; write "2/4" for the second of four')
    return int(number), int(parts)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--note-times`` and ``--part``."""
    parser.addoption("--note-times", action="store_true", help=f"write the times of the files into {DURATIONS.name}")
    parser.addoption("--part", type=_part, help="of the files that are left run a part only, such as 2/4")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the files of other parts."""
    part: tuple[int, int] | None = config.getoption("--part")
    if part is None:
        return
    number, parts = part
    ours, others = [], []
    for item in items:
        (ours if part_of(item.nodeid.split("::")[0], parts) == number else others).append(item)
    config.hook.pytest_deselected(items=others)
    items[:] = ours


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Give pytest-xdist our order of the files, for ``--dist loadfile``."""
    if config.getvalue("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadFileScheduling

    class ByTime(LoadFileScheduling):  # type: ignore[misc]
        """Takes the files out of the queue in the order of `next_file`; never runs again what ended a process."""

        times = read_times().get(config.option.markexpr, {})
        begun: dict[str, set[str]] = {}

        def _assign_work_unit(self, node: Any) -> None:
            process = node.gateway.id
            file = next_file(self.workqueue, self.begun, process, self.times)
            self.begun.setdefault(process, set()).add(folder_of(file))
            self.workqueue.move_to_end(file, last=False)
            super()._assign_work_unit(node)

        def remove_node(self, node: Any) -> str | None:
            files = self.assigned_work[node]
            ran = next((test for tests in files.values() for test, done in tests.items() if not done), None)
            if ran is None:
                return super().remove_node(node)  # type: ignore[no-any-return]
            del self.assigned_work[node]
            files[ran.split("::")[0]][ran] = True
            self.workqueue.update({file: tests for file, tests in files.items() if not all(tests.values())})
            for other in self.assigned_work:
                self._reschedule(other)
            return ran

    return ByTime(config, log)


class _Times:
    """Adds up what the tests of each file took, in the process that shows the results."""

    def __init__(self, lane: str, write: bool) -> None:
        self._lane = lane
        self._write = write
        self._seconds: Counter[str] = Counter()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count set-up, call and teardown."""
        self._seconds[report.nodeid.split("::")[0]] += report.duration  # type: ignore[assignment]

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Show the slowest files of a long run, and note the times if that was asked for."""
        if sum(self._seconds.values()) > 60:
            terminalreporter.write_sep("=", f"slowest {SHOWN} files")
            for file, seconds in self._seconds.most_common(SHOWN):
                terminalreporter.write_line(f"{seconds:7.1f}s {file}")
            terminalreporter.write_line(f"{sum(self._seconds.values()):7.1f}s in all files")
        noted = read_times()
        if self._write:
            note_times(noted, self._lane, self._seconds)
        elif unknown := sorted(self._seconds.keys() - noted.get(self._lane, self._seconds).keys()):
            terminalreporter.write_line(f"without a time in {DURATIONS.name}; run them with --note-times:")
            terminalreporter.write_line(" ".join(unknown))


def pytest_configure(config: pytest.Config) -> None:
    """Add the times up, but not in each process of pytest-xdist."""
    if not hasattr(config, "workerinput"):
        times = _Times(config.option.markexpr, config.getoption("--note-times"))
        config.pluginmanager.register(times, "times of files")
