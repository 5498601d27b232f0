"""Notebooks without a kernel: IPython's own shell executes the cells, all of capture is as it is. A case costs little.

What a kernel adds, messages and the event loop that they arrive in, is tried by the cases that ``conftest.py`` names.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any
from uuid import uuid4

from kernels import INSTALL, TRAINING, Kernel, environment_of

_FOLDERS = [str(Path(__file__).parent), str(Path(__file__).parents[1])]
_SERVE = f"import sys; sys.path[:0] = {_FOLDERS!r}; import warm_shell; del sys.path[:2]; warm_shell.serve()"


class ShellKernel(Kernel):
    """A shell of IPython's, in a process forked from one that has the libraries loaded."""

    def __init__(self, folder: Path, shared: Path) -> None:
        super().__init__(folder, shared)
        (shared / "det_stand_in.py").write_text(TRAINING)
        self._open = False
        self._process = subprocess.Popen(
            [sys.executable, "-c", _SERVE],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=folder,
            env=environment_of(folder),
        )

    def close(self) -> None:
        """End the process that forks the notebooks."""
        self.end()
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait(timeout=60)

    def begin(self, folder: Path, imported: bool = True) -> None:
        """Start a fresh notebook in `folder`."""
        self.end()
        self.folder = folder
        cells = [_cell(code, silent=True) for code in INSTALL] if imported else []
        self._ask({"folder": str(folder), "shared": str(self.shared), "cells": cells})
        self._open = True

    def end(self) -> None:
        """End the notebook, so that no process of it is left."""
        if self._open:
            self._open = False
            answer = self._ask({"cells": []})
            assert answer == {"ended": 0}, answer

    def run(self, code: str, *, cell: str | None = None, tags: tuple[str, ...] = (), silent: bool = False) -> str:
        """Execute as ipykernel does; return what was printed, tracebacks included."""
        [printed] = self._execute([_cell(code, cell, tags, silent)])
        return printed

    def cells(self, *sources: str) -> None:
        """Execute several cells in order."""
        self._execute([_cell(source) for source in sources])

    def _execute(self, cells: list[dict[str, Any]]) -> list[str]:
        answer = self._ask({"cells": cells})
        if "printed" not in answer:
            self._open = False
            raise AssertionError(f"the notebook's process has died: {answer}")
        printed: list[str] = answer["printed"]
        return printed

    def _ask(self, request: dict[str, Any]) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        assert line, "the process that forks notebooks has died"
        answer: dict[str, Any] = json.loads(line)
        return answer


def _cell(code: str, cell: str | None = None, tags: tuple[str, ...] = (), silent: bool = False) -> dict[str, Any]:
    return {"code": code, "id": cell or uuid4().hex, "tags": list(tags), "silent": silent}
