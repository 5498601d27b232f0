"""The Core API: metrics, checkpoints, preemption and the searcher for code of any framework."""
