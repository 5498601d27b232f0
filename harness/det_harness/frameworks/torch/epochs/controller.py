"""Runs a trial of a loop over ``context.epochs()`` in PyTorch."""

from __future__ import annotations

import logging
from types import FrameType

import torch

from det_harness.frameworks.torch.call_snapshot import begin_loop
from det_harness.frameworks.torch.epochs.definition import CapturedLoop
from det_harness.frameworks.torch.epochs.shares import Shares
from det_harness.frameworks.torch.epochs.training import EpochsTraining
from det_harness.loops.controller import PassesController
from det_harness.trial.services import Services
from det_native.pytorch.epochs_call import TorchEpochsCall
from det_native.pytorch.samplers import seed_for
from det_native.pytorch.wrapped_loader import WrappedLoader

logger = logging.getLogger("det_harness")


class EpochsController(PassesController):
    """See ``PassesController``; on several slots each trains on its share of what wrapped loaders give."""

    _call: TorchEpochsCall
    _training: EpochsTraining

    def __init__(self, call: TorchEpochsCall, services: Services) -> None:
        super().__init__(call, EpochsTraining(CapturedLoop(call, services), call))
        self._taken = 0
        self._versions: list[int] = []

    def close(self) -> None:
        """Let go of the user's code, and give wrapped loaders their own passes back."""
        super().close()
        self._call.context.loading.most = None
        self._call.context.loading.pass_of = WrappedLoader.batches
        self._call.context.loading.dataset_of = WrappedLoader.whole_dataset

    def _begin(self, frame: FrameType | None) -> None:
        context, training = self._call.context, self._training
        context.loading.most = 1 if training.loop.quick else None
        if context.role == "worker":  # here nothing goes on from a checkpoint
            begin_loop(context, frame)
        if training.ranks.several:
            shares = Shares(context, self._communicator)
            context.loading.pass_of, context.loading.dataset_of = shares.pass_of, shares.dataset_of
            self._warn_of_whole_data(shares, frame)

    def _warn_of_whole_data(self, shares: Shares, frame: FrameType | None) -> None:
        """Say which names of the loop stand for all records, where each slot trains on its share of them."""
        if frame is None or self._communicator.rank:
            return
        code, names = frame.f_code, {**frame.f_globals, **frame.f_locals}
        values = {name: names.get(name) for name in (*code.co_names, *code.co_varnames, *code.co_freevars)}
        for name in shares.names_of_data(values):
            text = (
                f"The loop over context.epochs() reads `{name}`, which has all records, and on "
                f"{self._communicator.size} slots each trains on its share of them: a sum over "
                f"records of its batches, divided by len({name}), is that much too small. Divide by len() of the "
                "wrapped loader's .dataset, or by what the loop has counted."
            )
            logger.warning(text)
            self._training.services.reporter.warning(text)

    def _started(self) -> None:
        """Have each slot draw its own numbers from torch: dropout, noise. Python's and NumPy's decide alike on all."""
        rank, seed = self._communicator.rank, self._training.services.environment.trial_seed
        if rank and not self._training.done:
            torch.manual_seed(seed_for(seed, rank))

    def _begin_pass(self) -> None:
        context = self._call.context
        context.enter_batch(self._training.done)
        self._taken, self._versions = context.loading.taken, self._changes()
        if self._training.ranks.several:
            self._training.ranks.send_buffers()

    def _is_used(self) -> bool:
        """Whether the body has done something in its epoch: reported, taken a batch, or changed a weight."""
        taken = self._call.context.loading.taken > self._taken
        return super()._is_used() or taken or self._changes() != self._versions

    def _changes(self) -> list[int]:
        """Return how often the last weight of each optimizer was changed in place."""
        groups = (optimizer.param_groups for optimizer in self._call.context.optimizers)
        return [several[-1]["params"][-1]._version for several in groups if several and several[-1]["params"]]
