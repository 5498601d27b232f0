"""The launcher of a master: that of this machine, or that of a Ray cluster, once the cluster has answered."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

from det_native.errors import DetError, MasterStartError
from det_native.master.config import MasterConfig
from det_native.master.launch.base import Launcher
from det_native.schema.home import REFUSED
from det_native.schema.launchers import RAY
from det_native.schema.rest import SlotInfo

logger = logging.getLogger(__name__)

#: So long the start of a master waits for a cluster that does not answer: then it goes on without, and tries again.
CLUSTER_SECONDS = 30.0
#: So long it waits for one that has never answered this home, while somebody waits for the master.
NEW_CLUSTER_SECONDS = 10.0


class ReachesCluster(Protocol):
    """What is asked of a launcher of several machines before the master answers."""

    @property
    def refused(self) -> bool:
        """Whether trying again changes nothing."""

    @property
    def is_away(self) -> bool:
        """Whether nobody has answered at its address."""

    @property
    def was_reached(self) -> bool:
        """Whether the cluster has answered, now or to an earlier master of this home."""

    def trouble(self) -> str:
        """Return why the cluster cannot be used now."""

    def wait(self, timeout: float) -> bool:
        """Return when something has changed, or time is up."""


@dataclass(frozen=True)
class Launching:
    """A launcher, and the slots that it begins with; `cluster` is that of a launcher of several machines."""

    launcher: Launcher
    slots: list[SlotInfo]
    cluster: ReachesCluster | None = None


def make_launcher(config: MasterConfig, umask: int, url: Callable[[], str]) -> Launching:
    """Return the launcher that a master is started with; of a Ray cluster, it has not reached that yet.

    Parameters
    ----------
    umask : int
        Of the files that workers write.
    url : callable
        Says where workers find the master, once it listens.

    Raises
    ------
    DetError
        If the settings of slots do not fit, or Ray is not installed.
    """
    if config.launcher == RAY:
        from det_native.master.launch.ray.launcher import RayLauncher, check_ray

        with telling(config):
            check_ray(config.ray_address)
        launcher = RayLauncher(
            config.home, url, config.ray_address, slots=config.slots, trusted=config.ray_trusted, umask=umask
        )
        return Launching(launcher, [], cluster=launcher)
    from det_native.master.launch.local import LocalLauncher
    from det_native.master.launch.slots import discover_slots

    slots = discover_slots(config.slots)
    local = LocalLauncher(config.home.standby, slots=len(slots), device=slots[0].device, umask=umask)
    return Launching(local, slots)


def wait_for_cluster(config: MasterConfig, launcher: ReachesCluster, seconds: float = CLUSTER_SECONDS) -> None:
    """Wait until a cluster has answered, so that who starts the master hears of what is wrong.

    One that does not answer in time may still come: the master then starts, and says what it waits for. But where it
    has never answered this home and somebody waits for the master, its address is taken to be wrong.

    Raises
    ------
    MasterStartError
        If the cluster cannot be used, and trying again would change nothing, or its address is likely wrong.
    """
    begun = time.monotonic()
    end = begun + seconds
    soon = begun + min(NEW_CLUSTER_SECONDS, seconds)
    with telling(config):
        while trouble := launcher.trouble():
            if launcher.refused:
                raise MasterStartError(trouble)
            unknown = config.ready_fd is not None and not launcher.was_reached
            left = (soon if unknown and launcher.is_away else end) - time.monotonic()
            if left <= 0 and unknown and launcher.is_away:
                raise MasterStartError(trouble)
            if left <= 0:
                logger.warning("the master starts without its cluster: %s", trouble)
                return
            launcher.wait(left)


@contextmanager
def telling(config: MasterConfig) -> Iterator[None]:
    """Write the sentence of an error to whoever has started the master, before it ends with that."""
    try:
        yield
    except DetError as error:
        if config.ready_fd is not None:
            os.write(config.ready_fd, REFUSED + " ".join(str(error).split()).encode() + b"\n")
        raise
