"""What a master is started with: arguments of ``python -m det_native.master`` and environment variables."""

from __future__ import annotations

import argparse
import ipaddress
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from det_native.errors import ArgumentError
from det_native.master.scheduling.facts import Policy
from det_native.master.scheduling.plan import MOST_WITHOUT_SLOTS
from det_native.schema.home import Home
from det_native.schema.launchers import LAUNCHERS, check_ray_address, check_ray_options
from det_native.schema.sizes import parse_size
from det_native.schema.storage_config import UrlStorage

LOOPBACK = "127.0.0.1"


@dataclass(frozen=True)
class MasterConfig:
    """Settings of one master.

    Attributes
    ----------
    host : str or None
        Address to listen on by TCP, too; beyond loopback only with TLS. None for the home's socket only, unless a port
        is given: then it is that of loopback.
    port : int
        0 for the port of the last start, or any free one.
    slots : str or None
        See ``launch.slots.discover_slots``; of a cluster, those of each machine.
    launcher : str
        ``local``, or ``ray`` for the machines of a Ray cluster.
    ray_address : str
        ``auto``, ``host:port`` of the head, or ``ray://host:port``.
    ray_trusted : bool
        Whether a cluster is used though whoever reaches it can run code on it.
    certificate, key : Path or None
        PEM files for TLS.
    warm : tuple of str
        Frameworks to have standbys for from the start.
    scheduler : Policy
        By what experiments come before others.
    without_slots : int
        How many trials that need no slot may run at the same time.
    storage : str
        Where bundles, written files, data and checkpoints lie: an address of fsspec's; empty for what an earlier start
        said, else the home.
    storage_options : dict
        What the file system of that address takes.
    checkpoints : str
        Where new experiments keep their checkpoints: an address of fsspec's; empty for the folder in `home`.
    checkpoint_options : dict
        What the file system of that address takes.
    disk_budget : int or None
        Bytes that the home may take, 0 for as many as the disk has; None for what an earlier start said.
    ready_fd : int or None
        Descriptor on which ``ready`` is written once requests are answered.
    options : tuple of str
        The arguments that a master in its place is started with: those of one that is killed.
    """

    home: Home
    host: str | None = None
    port: int = 0
    slots: str | None = None
    launcher: str = "local"
    ray_address: str = "auto"
    ray_trusted: bool = False
    certificate: Path | None = None
    key: Path | None = None
    warm: tuple[str, ...] = ()
    scheduler: Policy = Policy.PRIORITY
    without_slots: int = MOST_WITHOUT_SLOTS
    storage: str = ""
    storage_options: dict[str, Any] = field(default_factory=dict, repr=False)
    checkpoints: str = ""
    checkpoint_options: dict[str, Any] = field(default_factory=dict, repr=False)
    disk_budget: int | None = None
    ready_fd: int | None = None
    options: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if (self.certificate is None) != (self.key is None):
            raise ArgumentError("--tls-cert and --tls-key belong together; only one of them is given")
        for path in (self.certificate, self.key):
            if path is not None and not os.access(path, os.R_OK):
                raise ArgumentError(f"the file {path} for TLS cannot be read")
        if not self.loopback and self.certificate is None:
            raise ArgumentError(
                f"--host {self.host} would open this machine to the network without encryption: "
                f"give --tls-cert and --tls-key too, or keep to {LOOPBACK}"
            )

    @property
    def tcp(self) -> str | None:
        """Address to listen on by TCP, None if that was not asked for."""
        return self.host or (LOOPBACK if self.port or self.certificate is not None else None)

    @property
    def loopback(self) -> bool:
        """Whether only this machine can reach it."""
        if self.tcp in (None, "localhost"):
            return True
        try:
            return ipaddress.ip_address(self.tcp or "").is_loopback
        except ValueError:
            return False

    @property
    def scheme(self) -> str:
        """``http`` or ``https``."""
        return "http" if self.certificate is None else "https"


def parse_arguments(arguments: Sequence[str], environment: Mapping[str, str] = os.environ) -> MasterConfig:
    """Read the command line; what it leaves open comes from ``DET_HOME``, ``DET_SLOTS`` and others.

    Raises
    ------
    ArgumentError
        If the settings contradict each other or are not safe.
    """
    parser = argparse.ArgumentParser(prog="det_native.master", description="The det_native master.")
    parser.add_argument("--home", type=lambda text: Path(text).expanduser().absolute())
    parser.add_argument("--host")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--slots", default=environment.get("DET_SLOTS"))
    parser.add_argument("--launcher", default=environment.get("DET_LAUNCHER") or "local")
    parser.add_argument("--ray-address", metavar="ADDRESS")
    parser.add_argument("--ray-trusted", action="store_true")
    parser.add_argument("--tls-cert", type=Path)
    parser.add_argument("--tls-key", type=Path)
    parser.add_argument("--warm", action="append", default=[], metavar="FRAMEWORK")
    parser.add_argument("--scheduler", default=environment.get("DET_SCHEDULER") or Policy.PRIORITY.value)
    parser.add_argument("--without-slots", default=environment.get("DET_TRIALS_WITHOUT_SLOTS") or MOST_WITHOUT_SLOTS)
    parser.add_argument("--storage", default=environment.get("DET_STORAGE") or "", metavar="URL")
    parser.add_argument("--checkpoints", default=environment.get("DET_CHECKPOINTS") or "", metavar="URL")
    parser.add_argument("--disk-budget", default=environment.get("DET_DISK_BUDGET"))
    parser.add_argument("--ready-fd", type=int)
    found = parser.parse_args(arguments)
    if found.scheduler not in set(Policy):
        raise ArgumentError(f"scheduler: {found.scheduler!r} is none: set DET_SCHEDULER to {' or '.join(Policy)}.")
    if found.launcher not in LAUNCHERS:
        raise ArgumentError(f"DET_LAUNCHER must be {' or '.join(LAUNCHERS)}, not {found.launcher!r}.")
    given = {"--ray-address": found.ray_address is not None, "--ray-trusted": found.ray_trusted}
    check_ray_options(found.launcher, [name for name, is_given in given.items() if is_given])
    ray_address = found.ray_address or environment.get("DET_RAY_ADDRESS") or "auto"
    check_ray_address(ray_address)
    if not str(found.without_slots).isdecimal():
        raise ArgumentError(f"DET_TRIALS_WITHOUT_SLOTS must be a whole number, not {found.without_slots!r}.")
    storage, storage_options = _storage(found.storage, environment, "STORAGE")
    checkpoints, options = _storage(found.checkpoints, environment, "CHECKPOINTS") if found.checkpoints else ("", {})
    return MasterConfig(
        home=Home(found.home) if found.home else Home.default(),
        host=found.host,
        port=found.port,
        slots=found.slots,
        launcher=found.launcher,
        ray_address=ray_address,
        ray_trusted=found.ray_trusted,
        certificate=found.tls_cert.absolute() if found.tls_cert else None,
        key=found.tls_key.absolute() if found.tls_key else None,
        warm=tuple(found.warm),
        scheduler=Policy(found.scheduler),
        without_slots=int(found.without_slots),
        storage=storage,
        storage_options=storage_options,
        checkpoints=checkpoints,
        checkpoint_options=options,
        disk_budget=budget_of(found.disk_budget) if found.disk_budget else None,
        ready_fd=found.ready_fd,
        options=_options(arguments),
    )


def _options(arguments: Sequence[str]) -> tuple[str, ...]:
    """Return the arguments without what is of this start alone, and the budget, which the home keeps."""
    own = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    for name in ("--home", "--warm", "--ready-fd", "--disk-budget"):
        own.add_argument(name, action="append")
    return tuple(own.parse_known_args(arguments)[1])


def _storage(url: str, environment: Mapping[str, str], name: str) -> tuple[str, dict[str, Any]]:
    """Return an address and what goes with it, checked as far as that is possible without a look there."""
    options = environment.get(f"DET_{name}_OPTIONS")
    if url and "://" not in url:
        url = str(Path(url).expanduser().absolute())
    try:
        given = json.loads(options or "{}")
    except ValueError:
        given = None
    if not isinstance(given, dict):
        raise ArgumentError(f'DET_{name}_OPTIONS must be a JSON object of fsspec\'s options, such as {{"anon": true}}.')
    try:
        if url:
            UrlStorage(type="url", url=url, options=given)
    except ValidationError as error:
        raise ArgumentError(f"--{name.lower()} (DET_{name}): {error.errors()[0]['msg']}.") from None
    return url, given


def budget_of(text: str) -> int:
    """Return the bytes of a disk budget, 0 for ``none``.

    Raises
    ------
    ArgumentError
        If it is no size.
    """
    if text.strip().lower() == "none":
        return 0
    return parse_size(text, "the disk budget (--disk-budget, DET_DISK_BUDGET)")
