"""Variables of the environment that a document's cells set, and what follows for its experiment."""

from __future__ import annotations

import pytest

from det_native.capture.document import Document, DocumentCell
from det_native.experimental.document_plan import Plan, plan_document

NAME = "KERAS_BACKEND"
CALL = """
import det_native as det
config = {"searcher": {"name": "single", "metric": "val_loss", "max_length": {"batches": 2}},
    "hyperparameters": {"global_batch_size": 8}, "records_per_epoch": 16}
context = det.experimental.keras.init(config)
model = context.wrap_model(build())
model.fit(x, y)
"""


def _plan(*cells: str) -> Plan:
    document = Document([DocumentCell(str(at), source, at + 1) for at, source in enumerate((*cells, CALL))])
    return plan_document(document, test=False, slots=None)


def _sent(plan: Plan) -> dict[str, str]:
    assert plan.config is not None, (plan.reasons, plan.problems)
    return plan.config.environment.environment_variables.for_device("cpu")


@pytest.fixture(autouse=True)
def no_backend(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody has chosen one."""
    monkeypatch.delenv(NAME, raising=False)


def test_the_backend_of_the_server_goes_with_the_experiment(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _sent(_plan()) == {}
    monkeypatch.setenv(NAME, "torch")
    assert _sent(_plan()) == {NAME: "torch"}


@pytest.mark.parametrize(
    "cell",
    [
        "import os\nos.environ['KERAS_BACKEND'] = 'jax'",
        "%env KERAS_BACKEND=jax",
        "import os\nos.environ['KERAS_BACKEND'] = choose()",
        "import os\nos.environ.update(KERAS_BACKEND='jax')",
    ],
)
def test_a_backend_that_a_cell_sets_is_learnt_by_running_the_cells(cell: str) -> None:
    plan = _plan(cell)
    assert plan.config is None
    assert any(NAME in reason for reason in plan.reasons)
