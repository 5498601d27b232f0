"""Runs programs twice, in processes with other hash seeds: a worker trains and packs, a notebook puts that in place.

Where a program says that it can go on (``#! goes on``), a worker is killed after it has trained once; another one puts
in place what it had packed, and trains once more.

A program is a file of ``cases/``: ``#! train`` begins what only the worker runs, ``#! check`` begins expressions, one a
line, which have to give the same in both afterwards; ``#! left`` begins the sentences that name what stays.
"""

from __future__ import annotations

import linecache
import os
import pickle
import subprocess
import sys
import tempfile
import types
from collections.abc import Sequence
from pathlib import Path
from typing import Any

CASES = Path(__file__).parent / "cases"
_FAILED = "Failed:"
_FIRST_IMPORTS = ("numpy", "pandas", "torch", "torch.utils.data", "tqdm.auto")


def parts(text: str) -> tuple[str, str, list[str], list[str]]:
    """Return a program's beginning, what trains, its checks, and the sentences that it expects."""
    begin, rest = text.split("#! train\n")
    train, rest = rest.split("#! check\n")
    checks, _, sentences = rest.partition("#! left\n")
    return begin, train, checks.splitlines(), sentences.splitlines()


def run_all(paths: list[Path], results: Path, imports: Sequence[str] = _FIRST_IMPORTS) -> dict[str, dict[str, Any]]:
    """Run programs, in forks of a process with these imports; return for each what the worker and the notebook say."""
    for side, seed in (("worker", "1"), ("notebook", "2")):
        subprocess.run(
            [sys.executable, __file__, side, ",".join(imports), str(results), *map(str, paths)],
            env={**os.environ, "PYTHONHASHSEED": seed, "OMP_NUM_THREADS": "1"},
            check=True,
            timeout=120,
        )
    return {
        path.stem: {
            role: _read(results, path.stem, role) for side in ("worker", "notebook") for role in _roles(side, path)
        }
        for path in paths
    }


def _roles(side: str, path: Path) -> list[str]:
    goes_on = {"worker": ["killed"], "notebook": ["restarted"]}[side] if "#! goes on" in path.read_text() else []
    return [side, *goes_on]


def _read(results: Path, name: str, role: str) -> Any:
    path = results / f"{name}.{role}"
    return (
        pickle.loads(path.read_bytes()) if path.exists() else {"failed": (results / f"{name}.{role}.txt").read_text()}
    )


def _run(role: str, path: Path, results: Path) -> None:
    """Run one program in this process, as its notebook's module."""
    begin, train, checks, _ = parts(path.read_text())
    module = types.ModuleType("__main__")
    sys.modules["__main__"] = module
    names = vars(module)
    os.chdir(tempfile.mkdtemp(dir=results))
    for name, text in (("<begin>", begin), ("<train>", train)):
        linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    exec(compile(begin, "<begin>", "exec"), names)  # noqa: S102
    from det_native.heap.call import CallSnapshot

    snapshot = CallSnapshot(names, kept_elsewhere=names.get("kept_elsewhere", ()))
    said: dict[str, Any] = {}
    if role in ("worker", "killed"):
        exec(compile(train, "<train>", "exec"), names)  # noqa: S102
        changes = snapshot.changes()
        said = {"data": changes.data, "sentences": changes.left_out}
    else:
        sender = "worker" if role == "notebook" else "killed"
        said = {"sentences": snapshot.put(_read(results, path.stem, sender)["data"])}
    if role in ("killed", "restarted"):
        exec(compile(train, "<train>", "exec"), names)  # noqa: S102
    said["values"] = [_value(check, names) for check in checks]
    (results / f"{path.stem}.{role}").write_bytes(pickle.dumps(said))


def _value(check: str, names: dict[str, Any]) -> str:
    try:
        return repr(eval(check, names))  # noqa: S307
    except Exception as error:  # noqa: BLE001 (shown by the test)
        return f"{_FAILED} {check!r}: {type(error).__name__}: {error}"


def main(side: str, imports: str, results: str, *paths: str) -> None:
    sys.path.insert(0, str(CASES))
    for name in imports.split(","):
        __import__(name)
    runs = [(program, role) for program in map(Path, paths) for role in _roles(side, program)]
    for path, role in runs:
        child = os.fork()
        if not child:
            output = os.open(f"{results}/{path.stem}.{role}.txt", os.O_WRONLY | os.O_CREAT)
            os.dup2(output, 1)
            os.dup2(output, 2)
            try:
                _run(role, path, Path(results))
            except BaseException:  # noqa: BLE001 (shown by the test)
                import traceback

                traceback.print_exc()
            finally:
                os._exit(0)
        os.waitpid(child, 0)


if __name__ == "__main__":
    main(*sys.argv[1:])
