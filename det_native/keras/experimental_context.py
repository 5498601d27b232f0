"""What a context of tf.keras has under ``context.experimental``."""

from __future__ import annotations

from det_native.horovod import HorovodTrialContext


class TFKerasExperimentalContext(HorovodTrialContext):
    """Experimental features of a context of tf.keras, which has one as its ``experimental``."""
