"""Runs a notebook of this folder in real kernels: plain, locally and on the cluster; what has to hold of the three."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pytest
from _pytest.mark import ParameterSet
from faults import Cluster
from forking.kernel import FOLDER
from journey_kernel import Notebook, Ran
from same_values import difference, expressions, read_values
from warm_kernels import WarmKernels

HERE = Path(__file__).parent
Mode = Literal["cluster", "local", "plain"]

#: What runs before anything is imported. What the system draws (the seed of an experiment that names none, numpy's of a
#: new process) is the same in each kernel, so that two runs of a notebook without seeds can be compared; `init()` seeds
#: there, since torch asks the system by itself. A worker has nothing of this. A notebook that seeds by itself has a file
#: `seeded` beside it.
DRAWS = """
def _draw_the_same():
    import importlib.abc, importlib.util, os, random, secrets, sys
    class Seeding(importlib.abc.MetaPathFinder):
        def find_spec(self, name, path, target=None):
            if name != "det_harness.trial.rng":
                return None
            sys.meta_path.remove(self)
            spec = importlib.util.find_spec(name)
            execute = spec.loader.exec_module
            def exec_module(module):
                execute(module)
                if not os.path.exists("seeded"):
                    module.begin = module.seed_process
            spec.loader.exec_module = exec_module
            return spec
    sys.meta_path.insert(0, Seeding())
    secrets.randbits = lambda bits: random.Random(bits).getrandbits(bits)
    secrets.randbelow = lambda limit: random.Random(limit).randrange(limit)
_draw_the_same()
del _draw_the_same
"""
#: What IPython runs before the first cell: ipykernel draws from Python's stream, too.
STARTUP = f"""{DRAWS}
def _seed_the_same(shell):
    import random
    def seed(*_):
        shell.events.unregister("pre_run_cell", seed)
        random.seed(1)
    shell.events.register("pre_run_cell", seed)
_seed_the_same(get_ipython())
del _seed_the_same
"""
END = """
import json
context.experiment.wait()
_ended = context.experiment
print("END" + json.dumps([_ended.history, list(map(str, _ended.report)), str(_ended.logs())], default=float))
"""
#: Makes ready for the cell that writes the values to compare.
BEFORE_VALUES = f"import sys; sys.path.append({str(HERE)!r}); from same_values import write_values"
#: What is said where the worker has something else than the notebook, or perhaps.
_DIFFERS = re.compile(r"something else|other content|differ(?!ent )|not compared|not restored|in the notebook\b")
_CELL = re.compile(r"^# %%(.*)\n", re.MULTILINE)
_RUNS = re.compile(r"^# runs: (.*)$", re.MULTILINE)
_PUT_RIGHT = re.compile(r"^# put right$", re.MULTILINE)
_PLAIN = re.compile(r"^# plain: the same losses$", re.MULTILINE)
_SAME = re.compile(r"^# same: (.*)$", re.MULTILINE)
_WITHIN = re.compile(r"^# plain: within ([\d.e-]+), since .+$", re.MULTILINE)
_INIT = re.compile(r"\.init\(")


@dataclass(frozen=True)
class Cell:
    """A cell: an identity, which one that was edited has in common with the one above it, and whether it raises."""

    source: str
    identity: str
    raises: bool

    def locally(self) -> Cell:
        """Return this cell with ``local=True`` in its call of ``init()``."""
        begin = _INIT.search(self.source)
        if begin is None:
            return self
        end = _end_of_call(self.source, begin.end())
        given = self.source[begin.end() : end].rstrip(", \n")
        source = f"{self.source[: begin.end()]}{given + ', ' if given else ''}local=True{self.source[end:]}"
        return Cell(source, self.identity, self.raises)


@dataclass(frozen=True)
class Written:
    """A notebook as its file has it: cells in the order of their runs, and what is to hold of it.

    `plain_is_same` says that plain losses are the same, `put_right` that the worker cannot have the notebook's values
    by running its cells, and takes those that travel. `same` are expressions that have equal values afterwards,
    `within` is by how much those of a plain run may differ.
    """

    cells: list[Cell]
    plain_is_same: bool
    put_right: bool
    same: list[str]
    within: float

    @classmethod
    def read(cls, path: Path) -> Written:
        """Read a file."""
        head, *parts = _CELL.split(path.read_text())
        cells: list[Cell] = []
        for title, source in zip(parts[::2], parts[1::2], strict=True):
            identity = cells[-1].identity if "edited" in title else f"cell-{len(cells)}"
            cells.append(Cell(source.strip("\n"), identity, "raises" in title))
        runs = _RUNS.search(head)
        order = [int(number) - 1 for number in runs[1].split()] if runs else range(len(cells))
        within = _WITHIN.search(head)
        return cls(
            cells=[cells[number] for number in order],
            plain_is_same=bool(_PLAIN.search(head)),
            put_right=bool(_PUT_RIGHT.search(head)),
            same=[name for line in _SAME.findall(head) for name in expressions(line)],
            within=float(within[1]) if within else 0.0,
        )


class WarmNotebook(Notebook):
    """A notebook whose kernel has its libraries imported."""

    def __init__(self, folder: Path, kernels: WarmKernels, first: str) -> None:
        self.folder, self.cells, self._displays = folder, [], {}
        self._kernels = kernels
        self._client = kernels.start(folder, first)

    def close(self) -> None:
        """End the kernel."""
        self._kernels.end(self._client)


class Kernels:
    """What notebooks run in: kernels of a cluster, cold or warm.

    Parameters
    ----------
    cluster : Cluster
    libraries : tuple of str
        What warm kernels have imported: only what draws nothing from Python's stream as it is imported.
    """

    def __init__(self, cluster: Cluster, *libraries: str) -> None:
        startup = cluster.folder / "ipython" / "profile_default" / "startup" / "draws.py"
        startup.parent.mkdir(parents=True, exist_ok=True)
        startup.write_text(STARTUP)
        # Sums over several threads have other last digits: as many threads here as a worker of this cluster has.
        threads = dict.fromkeys(("OMP_NUM_THREADS", "TF_NUM_INTRAOP_THREADS"), "1")
        own = {"IPYTHONDIR": str(cluster.folder / "ipython"), **threads}
        self._environment = cluster.environment | own
        self._warm = WarmKernels(cluster.folder, self._environment, DRAWS, libraries)

    def cold(self, folder: Path) -> Notebook:
        """Return a notebook in a kernel that has imported nothing, nor was forked: what its first cell does counts."""
        return Notebook(folder, {name: value for name, value in self._environment.items() if name != FOLDER})

    def warm(self, folder: Path, *, plain: bool) -> Notebook:
        """Return a notebook in a kernel that need not import much; plain, it finds no det_native."""
        return WarmNotebook(folder, self._warm, str(HERE / "plain") if plain else "")

    def close(self) -> None:
        """End what forks the kernels."""
        self._warm.close()


@dataclass(frozen=True)
class Outcome:
    """What a run came to."""

    history: dict[str, list[float]]
    said: list[str]
    values: dict[str, Any]


def run(path: Path, mode: Mode, kernels: Kernels, folder: Path) -> Outcome:
    """Run a notebook in a fresh kernel, and wait for its experiment."""
    written = Written.read(path)
    folder.mkdir()
    if written.same or written.plain_is_same:
        (folder / "seeded").touch()
    notebook = kernels.cold(folder) if mode == "cluster" else kernels.warm(folder, plain=mode == "plain")
    try:
        shown = [_run(notebook, cell.locally() if mode == "local" else cell) for cell in written.cells]
        values = values_of(notebook, written.same) if written.same else {}
        end = notebook.run(END)
    finally:
        notebook.close()
    history, rows, logs = json.loads(end.stdout.split("END", 1)[1])
    return Outcome(history, [*map(_all_of, shown), *rows, *logs.splitlines()], values)


def check(path: Path, kernels: Kernels, folder: Path) -> None:
    """Run a notebook in its three modes: it trains to the same losses, and nobody is told that something differs."""
    written = Written.read(path)
    there = run(path, "cluster", kernels, folder / "cluster")
    here = run(path, "local", kernels, folder / "local")
    plain = run(path, "plain", kernels, folder / "plain")
    said = [line for text in (*there.said, *here.said) for line in text.splitlines()]
    put_right = [line for line in said if "the notebook's is used" in line]
    assert [line for line in said if _DIFFERS.search(line) and not (written.put_right and line in put_right)] == []
    assert bool(put_right) == written.put_right
    assert any(there.history.values())
    assert there.history == {name: pytest.approx(values, rel=1e-5) for name, values in here.history.items()}
    differences = _differences(written, there, here, plain)
    assert not differences, "\n".join(differences)
    if written.same:
        return
    if written.plain_is_same:
        assert plain.history == {name: pytest.approx(here.history[name], rel=1e-5) for name in plain.history}
    else:
        near = here.history["loss"][0] / 2
        assert plain.history["loss"][-1] == pytest.approx(here.history["loss"][-1], abs=near)


def _run(notebook: Notebook, cell: Cell) -> Ran:
    return notebook.run(cell.source, cell=cell.identity, fails=cell.raises)


def values_of(notebook: Notebook, same: list[str]) -> dict[str, Any]:
    """Return what expressions come to in a cell as any other: what it reads of a model in training, it waits for."""
    notebook.run(BEFORE_VALUES)
    arguments = [f"value_{number}={expression}" for number, expression in enumerate(same)]
    notebook.run(f"write_values({', '.join(arguments)})")
    return dict(zip(same, read_values(notebook.folder).values(), strict=True))


def _differences(written: Written, there: Outcome, here: Outcome, plain: Outcome) -> list[str]:
    lines = []
    for name in written.same:
        for modes, other, within in (("cluster", there, 0.0), ("plain", plain, written.within)):
            unlike = difference(here.values[name], other.values[name], within)
            lines += [f"{name}: local and {modes} differ at {unlike}"] * bool(unlike)
    return lines


def _end_of_call(source: str, position: int) -> int:
    """Return where the bracket closes that is open at a position."""
    depth = 1
    for end in range(position, len(source)):
        depth += {"(": 1, ")": -1}.get(source[end], 0)
        if not depth:
            return end
    raise AssertionError("a bracket is not closed")


def _all_of(ran: Ran) -> str:
    views: list[Any] = [data.get("text/html", "") for data in ran.shown]
    return "\n".join([ran.text, *map(str, views)])


def notebooks(framework: str, first: tuple[str, ...] = (), last: tuple[str, ...] = ()) -> list[ParameterSet]:
    """Return the notebooks of a framework as parameters of a test; those that are not among the first are long.

    The last are like others of another framework: they are in ``make soak``.
    """
    paths = sorted(HERE.glob(f"{framework}_*.py"))
    assert {path.stem for path in paths} >= {*first, *last}
    marks: dict[str, Any] = dict.fromkeys(first, ()) | dict.fromkeys(last, pytest.mark.soak)
    return [pytest.param(path, id=path.stem, marks=marks.get(path.stem, pytest.mark.long)) for path in paths]
