"""Training of any framework by the Core API."""
