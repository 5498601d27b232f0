"""From a live notebook (or script) to a bundle: executed cells, the values they need, and files.

``call.capture_call`` is the way in; ``log.install`` starts the log of a kernel. Nothing is imported here, because the
harness and the import of ``det_native`` itself need single modules of this package only.
"""
