"""The configuration of a quick check."""

from __future__ import annotations

from det_native.schema.config import ExperimentConfig
from det_native.schema.lengths import Length, Unit
from det_native.schema.searcher import SingleSearcher


def testing_config(config: ExperimentConfig) -> ExperimentConfig:
    """Return the configuration of a quick check: one batch, one validation, one checkpoint."""
    one_batch = Length(unit=Unit.BATCHES, units=1)
    searcher = SingleSearcher(
        metric=config.searcher.metric,
        smaller_is_better=config.smaller_is_better,
        max_length=one_batch,
        source_trial_id=config.searcher.source_trial_id,
        source_checkpoint_uuid=config.searcher.source_checkpoint_uuid,
        source_optimizer=config.searcher.source_optimizer,
    )
    # The last checkpoint is what comes into the notebook, so that the cells below go on.
    kept = {"save_experiment_best": 0, "save_trial_best": 0, "save_trial_latest": 1}
    return config.model_copy(
        update={
            "name": f"[test-mode] {config.title}".rstrip(),
            "searcher": searcher,
            "scheduling_unit": 1,
            "min_validation_period": one_batch,
            "min_checkpoint_period": Length(unit=Unit.BATCHES, units=0),
            "perform_initial_validation": False,
            "max_restarts": 0,
            "checkpoint_storage": config.checkpoint_storage.model_copy(update=kept),
        }
    )
