"""Runs on this machine without a master, to be read downward.

``calls`` and ``loops`` (what the user called, here) -> ``samples`` (which trials it means) -> ``experiment``
(the block around its trials, and the services of each) -> the harness's controllers. What comes of it goes to
``record`` -> ``store`` (the files), over which ``source`` gives the same handles as a master does.
"""
