"""What the master keeps: tables, migrations, and one module of plain functions for each kind of thing stored."""
