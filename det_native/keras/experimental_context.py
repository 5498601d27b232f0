"""What a context of tf.keras has under ``context.experimental``."""

from __future__ import annotations

from det_native.horovod import HorovodContext, HorovodTrialContext
from det_native.keras.caches.decorators import DatasetCaches
from det_native.keras.caches.methods import CachingMethods
from det_native.schema.environment import TrialEnvironment


class TFKerasExperimentalContext(HorovodTrialContext, CachingMethods):
    """Experimental features of a context of tf.keras, which has one as its ``experimental``.

    Attributes
    ----------
    caches : DatasetCaches
        The cached datasets that the trial has asked for.
    """

    def __init__(self, env: TrialEnvironment, hvd_config: HorovodContext | None = None) -> None:
        super().__init__(env, hvd_config)
        self.caches = DatasetCaches(self)
