"""What exchanges the gradients of a trial's ranks; see ``det_native.pytorch.gradients.Gradients``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from det_native.errors import UnsupportedFeatureError
from det_native.schema.environment import TrialEnvironment

if TYPE_CHECKING:
    from det_native.pytorch.gradients import Gradients


def gradients_of(environment: TrialEnvironment) -> Gradients:
    """Return what exchanges the gradients of a trial.

    Raises
    ------
    UnsupportedFeatureError
        For more than one rank.
    """
    from det_native.pytorch.gradients import LocalGradients

    if environment.ranks.size > 1:
        raise UnsupportedFeatureError(
            f"resources.slots_per_trial: {environment.ranks.size} comes with a later version."
        )
    return LocalGradients()
