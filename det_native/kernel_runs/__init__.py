"""Runs that train in a process of the user's, and how a master gets to know of them."""
