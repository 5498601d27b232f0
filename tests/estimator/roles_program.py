"""One process of ``train_and_evaluate()`` in a role, on one of two machines, with the harness's own parts.

Started as ``python roles_program.py <specification.json> <rank>``; see `test_roles_on_machines`.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
from det_harness.frameworks.base import harness_of
from det_harness.ranks.gang import exit_report, ranks_of
from det_harness.trial.checkpoint import CheckpointOwner, TrialCheckpoints
from det_harness.trial.ending import write_atomically
from det_harness.trial.lengths import periods_of
from det_harness.trial.schedule import Schedule
from det_harness.trial.services import Services
from rows_reporter import RowsReporter
from two_machines import enter

from det_native.errors import DetError
from det_native.estimator.roles.call import UnchangedCall
from det_native.schema.environment import TrialEnvironment
from det_native.schema.job import Gang
from det_native.schema.ranks import rank_folder
from det_native.schema.states import ExitReason
from det_native.storage.checkpoints import CheckpointStorage

X = np.random.default_rng(3).normal(size=(20, 3)).astype("float32")
Y = X.argmax(1)


def data() -> Any:
    """Return batches without an end."""
    return tf.data.Dataset.from_tensor_slices(({"x": X}, Y)).batch(5).repeat()


def model_fn(features: Any, labels: Any, mode: str) -> Any:
    """Return the spec of a layer of three."""
    logits = tf.compat.v1.layers.dense(features["x"], 3)
    loss = tf.compat.v1.losses.sparse_softmax_cross_entropy(labels, logits)
    step = tf.compat.v1.train.get_global_step()
    train_op = tf.compat.v1.train.GradientDescentOptimizer(0.1).minimize(loss, step)
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def main(told: dict[str, Any], rank: int) -> dict[str, Any]:
    """Train in the role of a rank, and return what came of it."""
    enter(*told["machines"][rank])
    gang = Gang.model_validate(told["gangs"][rank])
    run = Path(gang.rendezvous).parent
    folder = rank_folder(run, rank)
    (folder / "work").mkdir(parents=True)
    os.chdir(folder / "work")
    environment = TrialEnvironment(config=told["config"], hparams={}, trial_seed=5, ranks=ranks_of(gang))
    harness, reporter, reason = harness_of("tf_estimator"), RowsReporter("loss"), ExitReason.HARNESS_ERROR
    try:
        with harness.joined(gang, told["config"], run, None) as communicator:
            addresses = json.loads(os.environ["TF_CONFIG"])["cluster"]
            estimator = tf.estimator.Estimator(
                model_fn, "model", config=tf.estimator.RunConfig(save_checkpoints_steps=10)
            )
            call = UnchangedCall(
                estimator,
                tf.estimator.TrainSpec(data, max_steps=told["steps"]),
                tf.estimator.EvalSpec(data, steps=2, start_delay_secs=0, throttle_secs=0),
            )
            services = Services(
                environment=environment,
                schedule=Schedule(periods_of(environment)),
                reporter=reporter,
                checkpoints=TrialCheckpoints(
                    CheckpointStorage(str(folder / "kept")), CheckpointOwner("tf_estimator", {}), reporter
                ),
                stop_requested=lambda: False,
                tensorboard=run / "events",
                communicator=communicator,
                add_folder=lambda path, root: None,
            )
            outcome = harness.controller(call, services).run()
            reason = ExitReason.COMPLETED
    finally:
        write_atomically(folder / "exit.json", exit_report(reason, 0, None))
    return {
        "batches": outcome.batches,
        "kept": [manifest.batch for _, manifest in reporter.checkpoints],
        "addresses": addresses,
    }


if __name__ == "__main__":
    specification, own = Path(sys.argv[1]), int(sys.argv[2])
    try:
        found = main(json.loads(specification.read_text()), own)
    except DetError as error:
        found = {"error": type(error).__name__, "text": str(error)}
    (specification.parent / f"found.{own}.json").write_text(json.dumps(found))
    sys.stdout.flush()
    os._exit(3 if "error" in found else 0)  # a role's thread may never end
