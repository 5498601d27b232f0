"""What trains, a folder for each framework."""
