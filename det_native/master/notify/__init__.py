"""Ways by which messages leave the master."""
