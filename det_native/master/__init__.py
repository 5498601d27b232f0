"""The master: keeps experiments, decides what runs where, and serves it all over HTTP."""
