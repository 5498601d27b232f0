"""What reaches a training call: the same on a worker as in the notebook, or the difference is told."""
