"""Training with Estimator: comes with a later version."""
