"""One trial, whatever its framework: what is due, what is reported, what a checkpoint is."""
