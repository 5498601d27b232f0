"""The Core API on the services of a trial."""
