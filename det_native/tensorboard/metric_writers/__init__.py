"""Writers of event files, one module for each framework."""
