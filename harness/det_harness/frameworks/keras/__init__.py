"""Training with Keras."""
