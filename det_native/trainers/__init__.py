"""Trainers that report by the Core API: our own, and what callbacks for others share."""
