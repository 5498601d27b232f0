"""A context of the Core API on the services of a trial."""

from __future__ import annotations

from typing import TYPE_CHECKING

from det_harness.core.run import CoreRun
from det_harness.trial.services import Services
from det_native.core.context import Context, OnClose
from det_native.core.distributed import DistributedContext
from det_native.core.modes import PreemptMode, TensorboardMode

if TYPE_CHECKING:
    from det_native.core.cluster_info import ClusterInfo


def core_context(
    services: Services,
    info: ClusterInfo | None,
    *,
    distributed: DistributedContext | None = None,
    preempt_mode: PreemptMode = PreemptMode.WorkersAskChief,
    tensorboard_mode: TensorboardMode = TensorboardMode.AUTO,
    on_close: OnClose | None = None,
) -> Context:
    """Return the context of a trial.

    Parameters
    ----------
    services : Services
        Of a worker, a run in this process, or nobody.
    info : ClusterInfo or None
        What ``context.info`` is.
    distributed : DistributedContext, optional
        The processes of the trial; by itself those that the services connect.
    on_close : callable, optional
        Is called once, when the context is closed, with the exception that ended the training.
    """
    if distributed is None:
        distributed = _of_services(services)
    return Context(CoreRun(services, info, distributed), preempt_mode, tensorboard_mode, on_close)


def _of_services(services: Services) -> DistributedContext:
    ranks, communicator = services.environment.ranks, services.communicator
    return DistributedContext(
        rank=ranks.rank,
        size=ranks.size,
        local_rank=ranks.local_rank,
        local_size=ranks.local_size,
        cross_rank=ranks.rank // max(1, ranks.local_size),
        cross_size=ranks.agents,
        _exchange=communicator if communicator.size > 1 else None,
    )
