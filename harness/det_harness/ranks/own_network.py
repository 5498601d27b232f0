"""The network in which TensorFlow's servers of a trial listen: one of the trial's own, where it is not trusted."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from det_harness.ranks.exchange import Exchange
from det_native.errors import UnsupportedFeatureError
from det_native.schema.job import Gang
from det_native.schema.namespaces import begin_network, begin_user, enter_network_of, enter_user_of
from det_native.schema.roles import roles_of

_RIGHTS, _NETWORK = "rights", "network"


def has_own_network(config: Mapping[str, Any]) -> bool:
    """Return whether the processes of a trial are to be in a network of their own."""
    return len(roles_of(config)) > 1 and not (config.get("distributed") or {}).get("trusted_network")


def get_rights(gang: Gang, folder: Path) -> None:
    """Get the rights to the trial's network, while this process has one thread; see ``schema.namespaces``."""
    exchange = Exchange(folder, gang.size)
    _after_first(gang, exchange, _RIGHTS, (begin_user, enter_user_of), "the first process of the trial did not begin")


def enter_network(gang: Gang, exchange: Exchange) -> None:
    """Be in the trial's network from now on; threads that report to the master already are not."""
    missing = "the first process of the trial did not make a network"
    _after_first(gang, exchange, _NETWORK, (begin_network, enter_network_of), missing)


def _after_first(
    gang: Gang, exchange: Exchange, word: str, ways: tuple[Callable[[], None], Callable[[int], None]], missing: str
) -> None:
    """Have the first process begin something, and the others enter what it has begun."""
    begin, enter = ways
    try:
        if gang.rank == 0:
            begin()
            exchange.say(word, os.getpid())
        else:
            [first] = exchange.await_all([word], missing)
            enter(first)
    except OSError as error:
        raise refused(error) from error


def refused(error: OSError) -> UnsupportedFeatureError:
    """Return the error for a machine that does not allow it."""
    return UnsupportedFeatureError(
        f"The trial cannot have a network of its own here ({error.strerror}), and TensorFlow's servers listen on every "
        "address of the machine: set distributed.trusted_network: true if all that reach it may run code on it."
    )
