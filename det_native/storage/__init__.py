"""Blobs, bundles and checkpoints on disk or in an object store, published atomically and verified when read."""
