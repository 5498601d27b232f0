"""When cells run once more beside a submit."""

from __future__ import annotations

from typing import Any

import pytest

from det_native.capture.model import Bundle
from det_native.experimental.dry_run import SHORT, begin_dry_run
from det_native.schema.manifests import BundleManifest, Interpreter, Program
from det_native.schema.proof import CallProof

NOBODY: Any = None
PROOF = CallProof(seed=1)


@pytest.mark.parametrize(("seconds", "proof"), [(None, PROOF), (SHORT + 1, PROOF), (0.1, None)])
def test_long_cells_and_what_nobody_compares_are_not_run(seconds: float | None, proof: CallProof | None) -> None:
    interpreter = Interpreter(python="3.11.7", executable="")
    program = Program(kind="cells", framework="torch")
    manifest = BundleManifest(protocol=1, interpreter=interpreter, program=program, proof=proof)
    assert begin_dry_run(NOBODY, 1, Bundle(manifest, {}, []), seconds, NOBODY) is None
