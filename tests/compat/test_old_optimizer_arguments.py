"""``SGD(lr=0.1)`` and its kind, each time in a fresh interpreter: what a name means hangs on what was imported."""

import pytest
from test_determined_alias import run_python

tf = pytest.importorskip("tensorflow")

from keras_generation import only_keras_2  # noqa: E402 (after the check for tensorflow)

pytestmark = [pytest.mark.slow, only_keras_2]

ALL = """
import os
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import warnings
import numpy as np
{imports}
import tensorflow as tf

def rate_after(optimizer, steps, eagerly=True):  # a graph takes half a second
    layer = tf.keras.layers.Dense(1, use_bias=False, kernel_initializer="zeros", input_shape=(1,))
    model = tf.keras.Sequential([layer])
    model.compile(optimizer, "mse", run_eagerly=eagerly)
    one = np.ones((1, 1), "float32")
    for _ in range(steps):
        model.train_on_batch(one, one)
    return float(model.get_weights()[0][0, 0])
"""
AS_DETERMINED = "import det_native.compat\nfrom determined.keras import TFKerasTrial"


def test_code_that_imports_determined_trains_with_the_learning_rate_and_the_decay_that_it_names() -> None:
    run_python(
        ALL.format(imports=AS_DETERMINED)
        + """
class Own(tf.keras.optimizers.SGD):
    def __init__(self, lr):
        super().__init__(lr=lr)

with warnings.catch_warnings():
    warnings.simplefilter("error")
    for optimizer in (tf.keras.optimizers.SGD(lr=0.1), tf.optimizers.SGD(lr=0.1, momentum=0.5), Own(0.1)):
        assert isinstance(optimizer, tf.keras.optimizers.Optimizer)
        assert abs(rate_after(optimizer, 1) - 0.2) < 1e-6, optimizer
    schedule = tf.keras.optimizers.schedules.ExponentialDecay(0.1, 1, 0.5)
    assert abs(rate_after(tf.keras.optimizers.SGD(lr=schedule), 1) - 0.2) < 1e-6
    assert abs(rate_after(tf.keras.optimizers.SGD(), 1) - 0.02) < 1e-6
for name in ("Adadelta", "Adagrad", "Adam", "Adamax", "Ftrl", "Nadam", "RMSprop", "SGD"):
    optimizer = getattr(tf.keras.optimizers, name)(lr=0.25)
    assert float(optimizer.learning_rate) == 0.25, name
    assert float(type(optimizer).from_config(optimizer.get_config()).learning_rate) == 0.25, name

# w += 2 * lr / (1 + decay * step) * (1 - w), by hand
w = 0.0
for step in range(3):
    w += 2 * 0.1 / (1 + 0.5 * step) * (1 - w)
assert abs(rate_after(tf.keras.optimizers.SGD(lr=0.1, decay=0.5), 3, eagerly=False) - w) < 1e-6
assert abs(rate_after(tf.keras.optimizers.SGD(0.1, decay=0.5), 3) - w) < 1e-6
old = tf.keras.optimizers.RMSprop(lr=0.001, decay=1e-6)
same = tf.keras.optimizers.legacy.RMSprop(0.001, decay=1e-6)
assert rate_after(old, 2) == rate_after(same, 2)
try:
    tf.keras.optimizers.SGD(lr=0.1, speed=3)
except TypeError as error:
    assert "speed" in str(error)
else:
    raise AssertionError
"""
    )


FIRST = "import det_native"


@pytest.mark.parametrize("order", [FIRST, pytest.param(f"import tensorflow\n{FIRST}", marks=pytest.mark.long)])
def test_other_code_is_warned_where_it_makes_the_optimizer_and_trains_as_in_plain_keras(order: str) -> None:
    run_python(
        ALL.format(imports=order)
        + """
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    optimizer = tf.keras.optimizers.RMSprop(lr=0.1)
    tf.keras.optimizers.SGD(learning_rate=0.1)
    tf.keras.optimizers.SGD(lr=0.01)
(warning,) = caught
from det_native.keras.old_arguments import warning_of
assert warning_of(optimizer) == str(warning.message)
assert str(warning.message) == (
    "RMSprop(lr=0.1): Keras ignores lr and trains with learning_rate=0.001. Write RMSprop(learning_rate=0.1)."
), warning
assert warning.filename == "<string>", warning.filename
assert abs(float(optimizer.learning_rate) - 0.001) < 1e-9
try:
    tf.keras.optimizers.SGD(decay=0.1)
except ValueError:
    pass
else:
    raise AssertionError
"""
    )
