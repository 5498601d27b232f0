"""What the harness does with code that calls TensorFlow's own ``train_and_evaluate()``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from det_harness.frameworks.estimator.outside import EstimatorsHarness
from det_native.runtime import active_host
from det_native.schema.environment import TrialEnvironment

if TYPE_CHECKING:
    from det_harness.program.calls import ProgramSource
    from det_harness.ranks.communicator import Communicator
    from det_harness.trial.services import Controller, Services
    from det_native.schema.job import Gang


class RolesHarness(EstimatorsHarness):
    """See ``FrameworkHarness``."""

    def joined(
        self, gang: Gang | None, config: Mapping[str, Any], folder: Path, source: ProgramSource | None
    ) -> AbstractContextManager[Communicator]:
        """Have the process take its role."""
        from det_harness.frameworks.tf_estimator.joining import in_its_role

        return in_its_role(gang, config, folder)

    @contextmanager
    def calls_taken(self) -> Iterator[None]:
        """Have the program's host take TensorFlow's own function, of code that has no ``init()`` which does that."""
        from det_native.estimator.roles.entry import taken_over

        with taken_over(_hand_over):
            yield

    def controller(self, payload: Any, services: Services) -> Controller:
        """Return what runs a captured call."""
        from det_harness.frameworks.tf_estimator.controller import RolesController

        self.note_names(payload)
        return RolesController(payload, services)

    def load(self, payload: Any, directory: Path, environment: TrialEnvironment) -> Any:
        """Return what an exporter has exported last before the checkpoint."""
        from det_harness.frameworks.tf_estimator.model_dir import load_export

        return load_export(directory)


def _hand_over(estimator: Any, train_spec: Any, eval_spec: Any) -> Any:
    from det_native.estimator.roles.call import UnchangedCall
    from det_native.estimator.roles.entry import tensorflows_own

    host = active_host()
    if host is None or not host.takes_any_call:
        return tensorflows_own(estimator, train_spec, eval_spec)
    return host.take_call("train_and_evaluate", UnchangedCall(estimator, train_spec, eval_spec))
