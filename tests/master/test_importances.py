"""The importance of hyperparameters over HTTP: which trials and values count, and that it is worked out once."""

from __future__ import annotations

from typing import Any

import pytest
from master_parts import Master, Worker

from det_native.schema.importance import Importance
from det_native.search.importance import importance

# At once: what it sets in the environment when it is imported stays.
pytest.importorskip("sklearn.ensemble")


def searched(master: Master, values: list[float]) -> Any:
    """Return an experiment whose trials have come to these values."""
    experiment = master.create(
        {
            "hyperparameters": {
                "global_batch_size": 32,
                "rate": {"type": "log", "minval": -4, "maxval": 0},
                "deep": {"width": 8},
            },
            "searcher": {"name": "random", "max_trials": len(values), "metric": "loss"},
        }
    )
    for at, value in enumerate(values):
        worker = Worker(master, master.world.wait_for_jobs(at + 1)[at])
        worker.start()
        worker.train(1, 100)
        worker.validate(100, loss=value, accuracy=1 - value)
        worker.exit(batch=100)
    return master.until_state(experiment["id"], "COMPLETED")


def test_importance_over_http(master: Master, monkeypatch: pytest.MonkeyPatch) -> None:
    experiment = searched(master, [0.5, 0.25, 0.125, 0.75])
    path = f"/experiments/{experiment['id']}/importance"
    calls: list[str] = []

    def counted(metric: str, rows: Any, powers: frozenset[str]) -> Importance:
        calls.append(metric)
        assert powers == {"rate"}
        assert [set(hparams) for hparams, _ in rows] == [{"rate", "deep.width", "global_batch_size"}] * len(rows)
        return importance(metric, rows, powers)

    monkeypatch.setattr("det_native.master.importances.importance", counted)
    found = master.get(path)
    assert found["metric"] == "loss"
    assert found["importances"] == [{"name": "rate", "importance": 1.0}]
    assert found == master.get(path)
    assert master.get(path, metric="accuracy")["importances"] == found["importances"]
    assert calls == ["loss", "accuracy"]
    none = master.get(path, metric="<b>no such metric</b>")
    assert none["importances"] == []
    assert "there are 0." in none["notes"][0]
    assert master.client.get("/api/v1/experiments/999/importance").status_code == 404
    assert master.client.get(f"/api/v1{path}", params={"metric": ""}).status_code == 422
