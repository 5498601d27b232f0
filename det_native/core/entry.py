"""``det.core.init()``: the context of the trial that this process belongs to, or one that nobody records."""

from __future__ import annotations

import atexit
import os
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from det_native.core.cluster_info import JOB_VARIABLE, get_cluster_info
from det_native.core.modes import PreemptMode, TensorboardMode
from det_native.errors import ArgumentError
from det_native.runtime import active_host
from det_native.schema.storage_config import Address

if TYPE_CHECKING:
    from det_native.core.context import Context
    from det_native.core.distributed import DistributedContext


def init(
    *,
    distributed: DistributedContext | None = None,
    checkpoint_storage: str | Mapping[str, Any] | None = None,
    preempt_mode: PreemptMode = PreemptMode.WorkersAskChief,
    tensorboard_mode: TensorboardMode = TensorboardMode.AUTO,
) -> Context:
    """Return the context of the trial that this process belongs to.

    In an experiment it reports to the master. Outside of any, metrics are lines of the logger ``det_native.core``,
    checkpoints are kept, and nobody asks for an end.

    Parameters
    ----------
    distributed : DistributedContext, optional
        The processes of the trial, where the script has started several or a launcher has.
    checkpoint_storage : str or dict, optional
        Where checkpoints go outside of an experiment: a folder, an address, or a section ``checkpoint_storage`` of a
        configuration. By default with those of this user's experiments.
    preempt_mode : PreemptMode
        Who asks whether the training is to end.
    tensorboard_mode : TensorboardMode

    Examples
    --------
    >>> with det.core.init() as context:
    ...     for step in range(100):
    ...         context.train.report_training_metrics(step + 1, {"loss": train(step)})
    """
    from det_harness.core.context import core_context

    from det_native.core.distributed import DistributedContext as Processes

    if distributed is not None and not isinstance(distributed, Processes):
        raise ArgumentError(
            f"det.core.init(distributed={distributed!r:.60}): give a det.core.DistributedContext, as "
            "DistributedContext.from_torch_distributed() is."
        )
    modes: dict[str, Any] = {"preempt_mode": preempt_mode, "tensorboard_mode": tensorboard_mode}
    host = active_host()
    if host is None and os.environ.get(JOB_VARIABLE):
        from det_harness.core.attached import attached

        stack = ExitStack()
        services = stack.enter_context(attached())

        def close(error: BaseException | None) -> None:
            stack.__exit__(type(error) if error is not None else None, error, getattr(error, "__traceback__", None))

        context = core_context(services, get_cluster_info(), distributed=distributed, on_close=close, **modes)
        close_at_exit(context)
        return context
    if host is not None and host.role == "worker" and host.takes_any_call:
        raise ArgumentError(
            "det.core.init() was called in a script whose entrypoint is the script alone, which is for "
            "tf.estimator.train_and_evaluate(): write `entrypoint: python3` before its path."
        )
    from det_harness.core.local import local_services

    place = _place(checkpoint_storage)
    ranks = None if distributed is None else distributed.ranks
    services = local_services(place.url, place.options, ranks=ranks)
    context = core_context(services, None, distributed=distributed, **modes)
    close_at_exit(context)
    return context


def close_at_exit(context: Context) -> None:
    """Close a context with its process, where nobody has: by the exception that ends a script, if one does."""

    def close() -> None:
        of_script = "IPython" not in sys.modules and not hasattr(sys, "ps1")
        context.close(getattr(sys, "last_value", None) if of_script else None)

    atexit.register(close)


def _place(given: str | Mapping[str, Any] | None) -> Address:
    """Return where checkpoints go that nobody records.

    Raises
    ------
    ArgumentError
        If it is no place.
    """
    if given is None:
        from det_native.schema.home import Home

        return Address(str(Home.default().path / "checkpoints"), {})
    if isinstance(given, str) and given:
        return Address(given, {})
    if isinstance(given, Mapping):
        from det_native.schema.loading import load_config

        storage = load_config({"checkpoint_storage": dict(given)}, local=True).checkpoint_storage
        address = getattr(storage, "address", None)
        return _place(None) if address is None else address
    raise ArgumentError(
        f"det.core.init(checkpoint_storage={given!r:.60}): give a folder, an address such as 's3://bucket/folder', "
        "or a section checkpoint_storage of a configuration."
    )
