"""Loops of the user's own that train: what they go over, and what they report."""
