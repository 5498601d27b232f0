"""The context of an ``EstimatorTrial``."""

from __future__ import annotations

from det_native.estimator.base_context import EstimatorContext


class EstimatorTrialContext(EstimatorContext):
    """What an ``EstimatorTrial`` asks about its trial, and the wrappers of its optimizer and data.

    Parameters
    ----------
    env : EnvContext
        The facts of the trial.
    hvd_config : HorovodContext, optional
        How gradients are exchanged, instead of what the configuration says.
    """
