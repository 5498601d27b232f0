"""``optimizations.torch_compile`` on two slots: gradients of a compiled backward are averaged as any others are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from rank_rig import largest_difference, run_ranks

pytestmark = pytest.mark.slow

CASE: dict[str, Any] = {"trial": "Compiled", "module": "compiled_trials"}
# The machine code is looked at on one slot.
SETTINGS = {"optimizations": {"torch_compile": {"backend": "aot_eager"}}}


def test_two_slots_train_compiled_models_as_others(tmp_path: Path) -> None:
    pair = run_ranks(tmp_path, {"plain": CASE, "compiled": {**CASE, "made": SETTINGS}})
    assert pair.codes == [0, 0], "\n".join(pair.outputs)
    assert [rank["facts"]["graphs"] for rank in pair.results("plain")] == [0, 0]
    first, second = pair.results("compiled")
    assert min(first["facts"]["graphs"], second["facts"]["graphs"]) > 0
    assert largest_difference(first["models"], second["models"]) == 0
    assert largest_difference(first["models"], pair.results("plain")[0]["models"]) < 2e-6
    assert [loss for _, loss in first["training"]] != [loss for _, loss in second["training"]]  # each has its batches
