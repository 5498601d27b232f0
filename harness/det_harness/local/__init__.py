"""Training in the user's own process."""
