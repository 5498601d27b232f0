"""Training with ``tf.estimator``: its own loop, in which a hook asks the schedule between two batches."""
