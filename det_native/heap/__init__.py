"""All that a notebook's names lead to: a snapshot of it, what has changed since, and putting that in place elsewhere."""
