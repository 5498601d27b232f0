"""The user's program: its cells or script, run up to the recorded training call."""
