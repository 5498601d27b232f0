"""The handle that Determined's SDK gives of an experiment: as every other, but that waiting returns the state."""

from __future__ import annotations

from det_native.client.arguments import Show
from det_native.client.handles import Experiment
from det_native.errors import ArgumentError, ExperimentFailedError
from det_native.schema.states import ExperimentState


class SdkExperiment(Experiment):
    """An experiment of ``det.experimental.client`` and of ``Determined``."""

    def wait(  # type: ignore[override]  # it returns the state, as code of that SDK expects
        self, interval: float = 5.0, *, timeout: float | None = None, show: Show = "view"
    ) -> ExperimentState:
        """Block until the experiment has ended; return its state, also where it has failed.

        Parameters
        ----------
        interval : float
            Has no effect: the end is reported at once.
        timeout, show
            See ``Experiment.wait`` of ``det.experiment()``, which returns the experiment and raises its failure.

        Raises
        ------
        ArgumentError
            If the experiment is paused.
        """
        if self.detail().state is ExperimentState.PAUSED:
            raise ArgumentError(f"Experiment {self.id} is paused: experiment.activate() has it go on.")
        try:
            super().wait(timeout, show=show)
        except ExperimentFailedError:
            if not self.detail().state.terminal:
                raise
        return self.detail().state
