"""What a worker process runs: unpack, schedule, controller, checkpoint, report."""
