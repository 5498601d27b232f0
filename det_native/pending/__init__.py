"""Trainings on the cluster: code that needs their weights waits for them, and finds them in its own objects."""
