"""The configuration of one minimal loop on the cluster (``test=True``)."""

from __future__ import annotations

from typing import Any

from det_native.schema.config import ExperimentConfig


def minimal_configuration(config: ExperimentConfig, hparams: dict[str, Any]) -> ExperimentConfig:
    """Rewrite a configuration to one trial of one batch, one validation and one checkpoint, without restarts.

    Parameters
    ----------
    config : ExperimentConfig
    hparams : dict
        The one sample of the hyperparameters to try.
    """
    written = config.model_dump(mode="json")
    searcher = written["searcher"]
    written |= {
        "name": f"[test-mode] {config.name or config.description or 'experiment'}",
        "scheduling_unit": 1,
        "min_validation_period": {"batches": 1},
        "min_checkpoint_period": {"batches": 0},
        "perform_initial_validation": False,
        "max_restarts": 0,
        "hyperparameters": {name: {"type": "const", "val": value} for name, value in hparams.items()},
        "searcher": {
            "name": "single",
            "metric": searcher["metric"],
            "smaller_is_better": searcher["smaller_is_better"],
            "max_length": {"batches": 1},
        },
    }
    return ExperimentConfig.model_validate(written)
