"""What tests of Keras ask about the generation that this Python has."""

from __future__ import annotations

import pytest

from det_native.keras.generations import NUMBER, TITLE

only_keras_2 = pytest.mark.skipif(NUMBER > 2, reason=f"tf.keras 2 has this, and this Python has {TITLE}")
only_keras_3 = pytest.mark.skipif(NUMBER < 3, reason=f"Keras 3 has this, and this Python has {TITLE}")
