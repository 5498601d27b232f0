"""What a training of an estimator may change outside of its graphs: hooks, input functions, names of the program."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from det_harness.frameworks.base import FrameworkHarness
from det_harness.trial import heap_file

if TYPE_CHECKING:
    from det_harness.frameworks.gpus import GpuSight


class EstimatorsHarness(FrameworkHarness):
    """What both ways of training an estimator have in common; its variables lie in files."""

    def warm_up(self, device: str) -> None:
        """Import TensorFlow, and build nothing."""
        import tensorflow as tf

        _ = tf.estimator.Estimator

    def gpu_sight(self) -> GpuSight:
        """Return what TensorFlow sees."""
        from det_harness.frameworks.gpus import tensorflow_sight

        return tensorflow_sight()

    def note_names(self, call: Any) -> None:
        """Look at all that a call can reach in the program, before it trains."""
        given = {"train_spec": call.train_spec, "eval_spec": call.eval_spec, "params": call.estimator.params}
        call.snapshot = heap_file.snapshot_of(given, call.context and call.context.env)

    def load_into(self, call: Any, directory: Path) -> list[str]:
        """Put what a training has changed into the program's objects."""
        if call.context is None:
            return []
        if call.context.role in ("worker", "load"):  # an earlier call, which does not train here
            self.note_names(call)
        return heap_file.bring_home(directory, call.snapshot)
