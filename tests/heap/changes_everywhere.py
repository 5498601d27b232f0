"""A program of every way to change a value times every place where it may be, as ``tests/differential`` has them."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "differential"))

from change_programs import HEAD, Change, all_changes

_BEGIN = f"""#! goes on
import torch
{HEAD.replace("import helper_of_changes", "import peat_helpers as helper_of_changes")}
torch.manual_seed(1)
data = Box()
"""


def program() -> str:
    """Return the program, in the form of those in ``cases/``."""
    changes = [Change(number, way, place) for number, (way, place) in enumerate(all_changes("torch loop"))]
    lines = [_BEGIN, *(change.make() for change in changes)]
    lines += ["#! train", *(f"for step in range(2): change{change.number}(step)" for change in changes)]
    lines += ["#! check", *(change.read() for change in changes), "#! left"]
    return "\n".join(lines) + "\n"
