"""A worker process: it waits for one job, runs it, and reports how it ended."""
