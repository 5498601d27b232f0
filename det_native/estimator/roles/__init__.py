"""TensorFlow's own ``train_and_evaluate()``, called by code that is not changed for det_native."""
