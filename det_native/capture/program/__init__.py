"""Which runs of a notebook's cells run again on a worker, and which values travel instead: pure functions."""
