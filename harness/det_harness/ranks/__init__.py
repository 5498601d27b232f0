"""Trials of several ranks: who they are, how they communicate, how a deadlock is noticed."""
