"""What the contexts of tf.keras share: models and data are wrapped."""

from __future__ import annotations

from typing import Any, ClassVar

from det_native.horovod import HorovodContext
from det_native.keras.experimental_context import TFKerasExperimentalContext
from det_native.keras.sharing import SharingContext
from det_native.schema.environment import TrialEnvironment


class TFKerasContext(SharingContext):
    """What tf.keras code asks about its trial, and wrappers for its data and optimizers.

    Parameters
    ----------
    env : EnvContext
        The facts of the trial.
    hvd_config : HorovodContext, optional
        How gradients are exchanged, instead of what the configuration says.

    Attributes
    ----------
    distributed : DistributedContext
        This process among those of the trial.
    metric_said : bool
        Whether the user's configuration names the metric by which trials are compared.
    experimental : TFKerasExperimentalContext
    """

    experimental: TFKerasExperimentalContext

    _public: ClassVar[tuple[str, ...]] = ("wrap_optimizer",)

    def __init__(self, env: TrialEnvironment, hvd_config: HorovodContext | None = None) -> None:
        super().__init__(env, hvd_config)
        self.metric_said = env.metric is not None
        self.experimental = TFKerasExperimentalContext(env, hvd_config)

    def wrap_optimizer(self, optimizer: Any) -> Any:
        """Prepare an optimizer for a trial on several slots; on one slot it is returned as it is."""
        return optimizer
