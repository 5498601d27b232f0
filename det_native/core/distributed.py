"""The processes of a trial, and what they exchange: ``DistributedContext`` by Determined's names."""

from __future__ import annotations

from typing import Any, Self

from det_native.errors import ArgumentError, UnsupportedFeatureError, shown_shortly
from det_native.schema.environment import Ranks
from det_native.trial import DistributedContext as _Exchanging
from det_native.trial import Exchange

#: The first process listens here where the processes connect by themselves.
PORT = 12360
_NUMBERS = ("rank", "size", "local_rank", "local_size", "cross_rank", "cross_size")


class DistributedContext(_Exchanging):
    """The place of this process among those of a trial, and what they exchange.

    Every process makes it, and makes each call that exchanges something in the same order. What is exchanged is
    pickled.

    Parameters
    ----------
    rank, size : int
        Of all processes.
    local_rank, local_size : int
        Of those on this machine.
    cross_rank, cross_size : int
        This machine among the machines.
    chief_ip : str, optional
        The address of the first process's machine, where there are several.
    pub_port : int
        The port at which the first process listens; `port_offset` is added.
    pull_port, force_tcp
        Without effect: the processes need one port, and it is always TCP.

    Examples
    --------
    >>> torch.distributed.init_process_group("gloo")
    >>> distributed = det.core.DistributedContext.from_torch_distributed()
    >>> with det.core.init(distributed=distributed) as context:
    ...     losses = context.distributed.gather(loss)
    """

    def __init__(
        self,
        *,
        rank: int,
        size: int,
        local_rank: int,
        local_size: int,
        cross_rank: int,
        cross_size: int,
        chief_ip: str | None = None,
        pub_port: int = PORT,
        pull_port: int = PORT + 1,
        port_offset: int = 0,
        force_tcp: bool = False,
        _exchange: Exchange | None = None,
    ) -> None:
        given = dict(zip(_NUMBERS, (rank, size, local_rank, local_size, cross_rank, cross_size), strict=True))
        _check(given)
        super().__init__(Ranks(rank, size, local_rank, local_size, agents=cross_size))
        self._cross_rank = cross_rank
        if _exchange is None and size > 1:
            from det_harness.core.connected import connected

            _exchange = connected(self._ranks, cross_rank, chief_ip, int(pub_port) + int(port_offset))
        if _exchange is not None:
            self.connect(_exchange)

    @property
    def cross_rank(self) -> int:
        """The place of this process's machine among the machines."""
        return self._cross_rank

    @classmethod
    def from_torch_distributed(cls, chief_ip: str | None = None) -> Self:
        """Take the processes of ``torch.distributed``, which has to be initialised.

        Parameters
        ----------
        chief_ip
            Without effect: the processes are connected already.

        Raises
        ------
        ArgumentError
            If it is not initialised.
        """
        import torch.distributed as distributed

        if not (distributed.is_available() and distributed.is_initialized()):
            raise ArgumentError(
                "DistributedContext.from_torch_distributed(): torch.distributed is not initialised. Call "
                "torch.distributed.init_process_group() first, in a process that a launcher has started "
                "(python3 -m determined.launch.torch_distributed, torchrun)."
            )
        from det_harness.core.connected import by_torch

        return cls._of(by_torch())

    @classmethod
    def from_deepspeed(cls, chief_ip: str | None = None) -> Self:
        """Take the processes of DeepSpeed, which has to be initialised: ``deepspeed.init_distributed()``.

        Raises
        ------
        ArgumentError
            If it is not.
        """
        import importlib

        comm = importlib.import_module("deepspeed.comm")
        if not comm.is_initialized():
            raise ArgumentError(
                "DistributedContext.from_deepspeed(): DeepSpeed is not initialised. Call deepspeed.init_distributed() "
                "first."
            )
        from det_harness.core.connected import by_torch

        return cls._of(by_torch())

    @classmethod
    def from_horovod(cls, hvd: Any, chief_ip: str | None = None) -> Self:
        """Take the processes of Horovod.

        Parameters
        ----------
        hvd : module
            ``horovod.torch`` or ``horovod.tensorflow``, after ``hvd.init()``.

        Raises
        ------
        ArgumentError
            If it is not initialised, or has no ``allgather_object()``.
        """
        missing = [name for name in ("allgather_object", "broadcast_object", "rank", "size") if not hasattr(hvd, name)]
        if missing:
            raise ArgumentError(
                f"DistributedContext.from_horovod() takes horovod.torch or horovod.tensorflow; {hvd!r:.60} has no "
                f"{missing[0]}()."
            )
        if not getattr(hvd, "is_initialized", lambda: True)():
            raise ArgumentError("DistributedContext.from_horovod(): call hvd.init() first.")
        from det_harness.core.connected import by_horovod

        return cls._of(by_horovod(hvd))

    @classmethod
    def from_tf_config(cls) -> Self:
        """Refuse: name the processes yourself.

        Raises
        ------
        UnsupportedFeatureError
        """
        raise UnsupportedFeatureError(
            "DistributedContext.from_tf_config() is not there: give the numbers that TF_CONFIG has yourself, "
            "DistributedContext(rank=..., size=..., local_rank=..., local_size=..., cross_rank=..., cross_size=..., "
            "chief_ip=...)."
        )

    @classmethod
    def _of(cls, found: tuple[Ranks, int, Exchange]) -> Self:
        ranks, cross_rank, exchange = found
        return cls(
            rank=ranks.rank,
            size=ranks.size,
            local_rank=ranks.local_rank,
            local_size=ranks.local_size,
            cross_rank=cross_rank,
            cross_size=ranks.agents,
            _exchange=exchange,
        )

    @property
    def ranks(self) -> Ranks:
        """The numbers of this process among the others."""
        return self._ranks

    @property
    def exchange(self) -> Any:
        """What connects the processes, None if there is one only."""
        return self._exchange

    def close(self) -> None:
        """Close the connections that were made for it."""
        close = getattr(self._exchange, "close", None)
        if close is not None:
            close()
            self._exchange = None


def _check(given: dict[str, Any]) -> None:
    for name, value in given.items():
        if not isinstance(value, int) or isinstance(value, bool) or value < 0:
            raise ArgumentError(f"DistributedContext({name}={value!r}): give a whole number from 0.")
    for name, size in (("rank", "size"), ("local_rank", "local_size"), ("cross_rank", "cross_size")):
        if given[name] >= given[size]:
            raise ArgumentError(
                f"DistributedContext({name}={given[name]}, {size}={given[size]}): {name} counts from 0, so it is "
                f"below {size}."
            )


def refuse_other_ranks(context: _Exchanging, call: str) -> None:
    """Refuse a call that only the first process may make.

    Raises
    ------
    RuntimeError
    """
    if context.rank:
        raise shown_shortly(
            RuntimeError(
                f"{call} was called in process {context.rank} of {context.size}; only the first one may: put it into "
                "`if context.distributed.rank == 0:`."
            )
        )
