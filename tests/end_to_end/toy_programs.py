"""The cells for tests of faults to which the framework is no matter: it is quick to start."""

from __future__ import annotations

from faults import GATE_CELL

BATCHES = 15
TOY_TRIAL = """
import det_native as det
from toy_framework.trial import ToyTrial

class Counting(ToyTrial):
    def train_batch(self, batch_idx):
        if str(batch_idx + 1) in self.context.get_hparam("stops").split():
            gate(self.context.get_hparam("port"), batch_idx + 1)
        metrics = super().train_batch(batch_idx)
        self.steps = [0] * self.context.get_hparam("size") + self.steps  # for large checkpoints
        return metrics

def configuration(**settings):
    return {
        "name": "fault",
        "hyperparameters": {"global_batch_size": 1, "stops": "", "port": 0, "size": 0} | settings,
        "searcher": {"name": "single", "metric": "val_loss", "max_length": {"batches": 15}},
        "scheduling_unit": 1,
        "min_validation_period": {"batches": 5},
        "min_checkpoint_period": {"batches": 3},
        "checkpoint_policy": "none",
        "reproducibility": {"experiment_seed": 11},
        "max_restarts": 2,
    }
"""
TOY_CREATE = "experiment = det.experimental.create(Counting, configuration(**settings))"
# All that the training has computed: its state, of which `size` is no part, and its rows.
TOY_END = """
def end_of(number):
    trial = det.attach(number).trials[0]
    loaded = trial.checkpoints[-1].load()
    rows = [trial.metrics(kind) for kind in ("training", "validation")]
    return [loaded.count, [step for step in loaded.steps if step], *rows]
"""
TOY_CELLS = (GATE_CELL, TOY_TRIAL, TOY_END)
