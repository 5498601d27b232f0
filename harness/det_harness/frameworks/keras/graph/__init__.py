"""Training with Keras where graphs are built and run in a session: eager execution is switched off."""
