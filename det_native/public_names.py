"""What completion shows of a package or an object: what is documented, and nothing else.

Nothing but the standard library is imported here.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import ClassVar


def listed(names: Collection[str]) -> Callable[[], list[str]]:
    """Return the ``__dir__`` of a module that shows its public names only.

    Parameters
    ----------
    names : collection of str
        Its ``__all__``.
    """
    return lambda: sorted(names)


def without_init(package: str) -> AttributeError:
    """Return the error for ``init()`` of a package where people guess that it is.

    Parameters
    ----------
    package : {"", "pytorch", "keras", "estimator"}
        Of ``det_native``; empty for a package that has all three.
    """
    from det_native.errors import shown_shortly

    if package:
        hint = f"init() of {package} is det.experimental.{package}.init(); det.{package} has the classes for trials."
    else:
        hint = (
            "init() belongs to a framework: det.experimental.pytorch.init(), det.experimental.keras.init(), "
            "det.experimental.estimator.init(), or det.experimental.core.init() for any other"
        )
    return shown_shortly(AttributeError(hint))


class PublicNames:
    """Base of objects that have more public attributes, for det_native itself, than a user should be shown.

    ``dir()``, and so completion, gives the names of ``_public`` of all its classes, and those that users' subclasses
    define.
    """

    #: Documented attributes and methods of this class.
    _public: ClassVar[tuple[str, ...]] = ()

    def __dir__(self) -> list[str]:
        """Return the documented names."""
        names: set[str] = set()
        for kind in type(self).__mro__:
            of_users = kind.__module__.partition(".")[0] not in ("det_native", "det_harness", "builtins")
            names.update(vars(kind) if of_users else kind.__dict__.get("_public", ()))
        return sorted(names)
