"""The process group of a trial on several slots: how its processes find each other, and how they part."""

from __future__ import annotations

import importlib
import logging
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, cast

from det_harness.program.calls import ProgramSource
from det_harness.ranks import horovod_group
from det_harness.ranks.communicator import Communicator, OneProcess, lost
from det_harness.ranks.deadlock import LONG_SECONDS, DeadlockDetection
from det_harness.ranks.meeting import MEETING_SECONDS, Listening, Meeting
from det_harness.ranks.network import Network, listener, network_of, torch_in
from det_harness.ranks.reach import reach_all, reach_first
from det_harness.ranks.ring_meeting import joined_in_ring
from det_harness.ranks.torch_communicator import COLLECTIVE_TIMEOUT, TorchCommunicator
from det_native.errors import RankLostError, UnsupportedFeatureError
from det_native.frameworks import get_framework, known_frameworks
from det_native.schema.job import Gang
from det_native.schema.manifests import Framework

logger = logging.getLogger("det_harness")


@contextmanager
def joined(
    gang: Gang | None,
    framework: Framework = "torch",
    config: Mapping[str, Any] | None = None,
    *,
    source: ProgramSource | None = None,
    deadline: float = MEETING_SECONDS,
    long_seconds: float = LONG_SECONDS,
) -> Iterator[Communicator]:
    """Join the processes of a trial for the block; gives what connects them.

    Parameters
    ----------
    gang : Gang or None
        None, or a gang of one: there is nobody to join.
    long_seconds : float
        After how long a wait within the training is looked into, see ``ranks.deadlock``.

    Raises
    ------
    UnsupportedFeatureError
        For a framework that trains on one slot only.
    MissingDependencyError
        If Horovod is wanted and not installed.
    UnreachableError
        If machines of the trial do not reach each other.
    RankLostError
        If another process does not come, or has gone before the end of the block.
    """
    if gang is None or gang.size == 1:
        yield OneProcess()
        return
    described = get_framework(framework)
    if described.one_slot:
        raise UnsupportedFeatureError(f"resources.slots_per_trial: {gang.size} is refused: {described.one_slot}.")
    if not described.gradient_means:
        titles = " and ".join(one.title for one in known_frameworks() if one.gradient_means)
        raise UnsupportedFeatureError(
            f"resources.slots_per_trial: {gang.size} works for {titles}; for {framework} it comes with a later version."
        )
    if "torch" not in described.gradient_means:
        library = cast(horovod_group.Library, described.module)
        _choose_gpu(gang)
        horovod_group.check(config or {}, library)
        with (
            joined_in_ring(gang, config, deadline=deadline, long_seconds=long_seconds) as in_ring,
            horovod_group.horovod_joined(gang, in_ring, config or {}, library, deadline=deadline),
        ):
            yield in_ring
        return
    import torch
    import torch.distributed as distributed

    horovod_group.check(config or {})
    if torch.cuda.is_available():
        torch.cuda.set_device(gang.local_rank % torch.cuda.device_count())
    network = network_of(gang, config)
    with torch_in(network, gang):
        store, secret = _meet(gang, network, deadline)
        with _translated():
            distributed.init_process_group(
                _backend(store, gang),
                store=store,
                rank=gang.rank,
                world_size=gang.size,
                timeout=COLLECTIVE_TIMEOUT,
            )
        try:
            deadlocks = DeadlockDetection(store, gang.rank, gang.size, source, long_seconds)
            communicator = TorchCommunicator(gang.rank, gang.size, secret, deadlocks)
            with horovod_group.horovod_joined(gang, communicator, config or {}, deadline=deadline):
                yield communicator
                # Whoever leaves first closes connections over which another may still be reading.
                communicator.barrier()
        finally:
            distributed.destroy_process_group()


def _backend(store: Any, gang: Gang) -> str:
    """Return the backends of the group: NCCL for tensors on GPUs, unless two ranks are on one, which it refuses."""
    import torch

    if not torch.cuda.is_available():
        return "gloo"
    properties = torch.cuda.get_device_properties(torch.cuda.current_device())
    store.set(f"gpu/{gang.rank}", str(properties.uuid))
    gpus = {store.get(f"gpu/{rank}") for rank in range(gang.size)}
    if len(gpus) == gang.size:
        return "cpu:gloo,cuda:nccl"
    if gang.rank == 0:
        logger.warning(
            "The %d slots of the trial share %d GPU(s), so their gradients go through the host's memory: give each "
            "slot a GPU of its own, or train on fewer slots.",
            gang.size,
            len(gpus),
        )
    return "cpu:gloo,cuda:gloo"


def _choose_gpu(gang: Gang) -> None:
    """Have TensorFlow see one GPU, before it takes the memory of all: that of this slot."""
    config: Any = importlib.import_module("tensorflow").config
    gpus = config.list_physical_devices("GPU")
    if len(gpus) > 1:
        config.set_visible_devices(gpus[gang.local_rank % len(gpus)], "GPU")


def _meet(gang: Gang, network: Network, deadline: float) -> tuple[Any, bytes]:
    """Return the store over which the ranks find each other, and their secret, once all of them are there."""
    from torch.distributed import TCPStore  # type: ignore[attr-defined]  # it is in torch's documents

    meeting, patience = Meeting(gang, deadline), timedelta(seconds=deadline)
    if gang.rank == 0:
        # By itself the store would listen on every address of the machine.
        listening = listener(network.address)
        own = Listening(network.address, listening.getsockname()[1])
        with _translated():
            store = TCPStore(
                own.host,
                own.port,
                None,
                True,
                patience,
                wait_for_workers=False,
                master_listen_fd=listening.detach(),
                use_libuv=False,  # which takes no listener before torch 2.7
            )
        meeting.share(own)
    else:
        first = meeting.share(None)
        reach_first(gang, first.host, first.port, meeting.end)
        with _translated():
            store = TCPStore(first.host, first.port, None, False, patience)
    try:
        store.set(f"here/{gang.rank}", "1")
        for rank in range(gang.size):
            store.wait([f"here/{rank}"], timedelta(seconds=max(meeting.end - time.monotonic(), 0.001)))
    except RuntimeError as error:
        raise RankLostError(
            f"Not all {gang.size} processes of the trial were there within {deadline:g} seconds. The output of the "
            "missing processes says why."
        ) from error
    with _translated():
        reach_all(gang, network, store)
    return store, meeting.secret


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except RuntimeError as error:
        raise lost(error) from error
