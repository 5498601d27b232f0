"""What a trial uses of its machine while it trains: processors, memory, GPUs, disk and network."""
