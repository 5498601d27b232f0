"""Trainings in this process, to be read downward.

``calls`` and ``loops`` (what the user called, here) -> ``samples`` (which trials it means) -> ``experiment``
(the block around its trial, and the services for it) -> the harness's controllers. ``det_native.kernel_runs`` has it
recorded, and has the source of its handle.
"""
