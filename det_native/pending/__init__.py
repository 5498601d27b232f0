"""Trainings that were submitted and whose weights are not in this process yet."""
