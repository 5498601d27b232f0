"""Start, poll and kill the worker processes, and read their logs."""
