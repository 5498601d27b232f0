"""Messages on what happens to experiments: which event is worth one, and what it says. Without I/O."""
