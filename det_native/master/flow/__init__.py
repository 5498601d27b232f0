"""What the master decides and does: experiments, their trials, the runs of those, and what they leave behind."""
