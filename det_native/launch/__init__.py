"""Launch layers: each starts the processes of a command that is an experiment's ``entrypoint``, one on each slot.

``entrypoint: python3 -m det_native.launch.torch_distributed python3 train.py``; code that was written for Determined
writes ``determined`` for ``det_native``.
"""
