"""One sentence for a framework that is not installed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from det_native.errors import MissingDependencyError
from det_native.frameworks.description import Description
from det_native.frameworks.registry import read_frameworks


def missing(framework: Description, user: str) -> MissingDependencyError:
    """Return the error that says what `user` needs and how to install it."""
    return MissingDependencyError(
        f'{user} needs {framework.title}, which is not installed in this Python: run  pip install "{framework.install}"'
    )


@contextmanager
def translated(user: str) -> Iterator[None]:
    """Turn the ``ModuleNotFoundError`` for a framework inside the block into one sentence with its ``pip install``.

    Parameters
    ----------
    user : str
        What needs the framework, as the user typed it.

    Raises
    ------
    MissingDependencyError
        If a framework is not installed. Other failures of an import pass unchanged.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        # Of a framework that is there, a module may be missing (one that other versions have): that is said as it is.
        framework = next((one for one in read_frameworks() if one.module == error.name), None)
        if framework is None:
            raise
        raise missing(framework, user) from None
