"""What comes home from a training call on the cluster: the call waits for its end, and the kernel has its result."""
