"""Alembic migrations of the store; `store.migrate` runs them when a master starts.

To change the tables: change ``store/tables.py`` or ``store/user_tables.py``, add a module to ``versions/`` whose
`down_revision` is the present HEAD, and name it here. A test compares what the migrations make with what the code
knows.
"""

HEAD = "0023"
