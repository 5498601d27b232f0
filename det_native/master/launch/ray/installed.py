"""Whether Ray is installed here; asked without importing it."""

from __future__ import annotations

from importlib.util import find_spec

from det_native.errors import MissingDependencyError


def check_ray(address: str) -> None:
    """Check that the cluster at an address could be used from here.

    Raises
    ------
    MissingDependencyError
        If Ray is not installed.
    """
    if find_spec("ray") is None or find_spec("grpc") is None:
        raise MissingDependencyError(
            f"Ray is not installed here, and the cluster at {address} needs it: pip install 'det-native[ray]'"
        )
