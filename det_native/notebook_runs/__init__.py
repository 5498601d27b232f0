"""Runs of whole notebooks in fresh kernels of this machine, in the background: as "Run all" would.

A run has a folder in the home (``notebook-runs/7``) and one process, which starts the notebook's kernel and outlives
the terminal, the browser and the Jupyter server that began it. Training calls of the cells capture, submit and wait as
in any kernel.
"""
