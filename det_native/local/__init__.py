"""The records of runs in processes of this machine's own: written by the run, read by handles, ``det`` and Jupyter."""
