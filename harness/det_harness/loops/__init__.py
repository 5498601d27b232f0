"""Loops of the user's own over passes: everything that belongs to a trial is done between two of them."""
