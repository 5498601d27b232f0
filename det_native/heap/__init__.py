"""All that the names of a notebook lead to: what a worker has changed in it, and how that comes home."""
