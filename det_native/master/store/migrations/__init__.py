"""Alembic migrations of the store; `store.migrate` runs them when a master starts."""
