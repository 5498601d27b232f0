"""What a standby's warming up leaves behind."""

import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow


def test_the_model_that_warms_keras_up_is_gone() -> None:
    """A standby keeps what is there after it for good."""
    code = """
import gc
from det_harness.worker.standby import warm_up
warm_up("keras", "cpu")
import tensorflow as tf
print("models", sum(isinstance(found, tf.keras.Model) for found in gc.get_objects()), gc.isenabled())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert done.stdout.splitlines()[-1] == "models 0 True", done.stderr
