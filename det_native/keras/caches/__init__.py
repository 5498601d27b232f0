"""Datasets that are written to disk once, as records that can be read in any order."""
