"""One file a library: a module with ``LIBRARY``; see ``det_native.inspection.registry``."""
