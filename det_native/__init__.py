"""Train deep-learning models from a notebook: in the kernel, then on a cluster, with the same cells."""

__version__ = "0.1.0"

PROTOCOL = 1
