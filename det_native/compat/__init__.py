"""The ``determined`` alias: ``import det_native.compat``, and code written for Determined finds det_native's objects.

``determined`` and its submodules become names of the very same module objects, so that a class imported either way is
one class. Where a real ``determined`` is installed, the alias stands aside.
"""

from det_native.compat.hook import ALIAS, TARGET, install

__all__ = ["ALIAS", "TARGET", "install"]

install()
