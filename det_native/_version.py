"""Our version, and that of the protocol which the client, the master and the workers speak."""

__version__ = "0.1.0"

PROTOCOL = 1
