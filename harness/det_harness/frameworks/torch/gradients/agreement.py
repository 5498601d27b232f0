"""What the ranks tell each other before gradients are exchanged: ranks that go different ways are told so, and where.

Each backward pass ends with such a meeting, and so does the training. The calls of a rank meet those of another one in
the order in which they are made; if one of them has left out a backward pass or a step, the numbers of batches and
steps, or what the ranks are about to do, differ at the latest when the next one meets.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import IntEnum

import torch

from det_harness.frameworks.torch.gradients.wire import Line
from det_harness.ranks.communicator import finish
from det_harness.ranks.deadlock import SAME_CALLS
from det_native.errors import TrialDefinitionError

_MOST = 1 << 20  # the squares of numbers under it add up exactly


class Doing(IntEnum):
    """What a rank is about to do."""

    BACKWARD = 0
    CLOSURE = 1
    STEP = 2
    END = 3


_WORDS = {
    Doing.BACKWARD: "has computed gradients by backward()",
    Doing.CLOSURE: "has computed the loss in the closure of an optimizer",
    Doing.STEP: "steps an optimizer with gradients that are its own",
    Doing.END: "has ended its training",
}


class Agreement:
    """The meetings of the ranks.

    Parameters
    ----------
    flags : int
        How many flags each rank brings.

    Attributes
    ----------
    batches, steps : int
        What the rank has begun, and made, so far.
    """

    def __init__(self, size: int, line: Line, flags: int) -> None:
        self.batches = self.steps = 0
        self._size = size
        self._line = line
        self._flags = flags

    def meet(self, doing: Doing, flags: Sequence[bool] = (), value: float = 0.0) -> tuple[list[bool], float]:
        """Meet the other ranks; a collective call. See `begin`."""
        return self.begin(doing, flags, value)()

    def begin(
        self, doing: Doing, flags: Sequence[bool] = (), value: float = 0.0
    ) -> Callable[[], tuple[list[bool], float]]:
        """Begin to meet the other ranks; what is returned waits for them.

        Parameters
        ----------
        doing : Doing
            What this rank is about to do.

        Returns
        -------
        flags : list of bool
            Whether each is set on any rank.
        value : float
            The mean of the values.

        Raises
        ------
        TrialDefinitionError
            If another rank does something else, or the same in another batch.
        RankLostError
            If another rank is gone.
        """
        kinds = [float(doing is kind) for kind in Doing]
        counts = [float(self.batches % _MOST), float(self.steps % _MOST)]
        squares = [count * count for count in counts]
        own = [*(float(flag) for flag in flags or [False] * self._flags), *kinds, *counts, *squares, value]
        sums = torch.tensor(own, dtype=torch.float64)
        work = self._line(sums, 0)

        def met() -> tuple[list[bool], float]:
            finish(work)
            *found, total = sums.tolist()
            any_flags, rest = found[: self._flags], found[self._flags :]
            self._check(doing, rest[: len(kinds)], rest[len(kinds) :], counts)
            return [flag > 0 for flag in any_flags], total / self._size

        return met

    @torch.no_grad()
    def are_alike(self, optimizers: Sequence[torch.optim.Optimizer]) -> bool:
        """Meet at the end of the training; returns whether the optimizers have the same weights on all ranks.

        Raises
        ------
        TrialDefinitionError, RankLostError
            As `meet` does.
        """
        total = 0
        for parameter in (one for made in optimizers for group in made.param_groups for one in group["params"]):
            total += int(parameter.detach().contiguous().reshape(-1).view(torch.uint8).sum(dtype=torch.int64))
        # A number, and its square, which tell whether all ranks have the same.
        own = float(total % _MOST)
        mean = self.meet(Doing.END, value=own)[1]
        return self.meet(Doing.END, value=own * own)[1] == mean * mean

    def _check(self, doing: Doing, kinds: list[float], sums: list[float], own: list[float]) -> None:
        if kinds[doing] != self._size:
            others = " and ".join(_WORDS[kind] for kind in Doing if kinds[kind] and kind is not doing)
            raise TrialDefinitionError(
                f"The slots of the trial go different ways: this slot {_WORDS[doing]}, while another one {others}. "
                f"{SAME_CALLS}"
            )
        of_batches, of_steps = (
            self._size * squared != total * total for total, squared in zip(sums[:2], sums[2:], strict=True)
        )
        if of_batches:
            raise TrialDefinitionError(
                f"This slot of the trial {_WORDS[doing]} in another batch than another slot: one of them has left out "
                f"a batch, or a backward pass. {SAME_CALLS}"
            )
        if of_steps:
            raise TrialDefinitionError(
                f"This slot of the trial has made {int(own[1])} steps of its optimizers so far, and another slot has "
                f"made more or fewer, so that their models part. {SAME_CALLS}"
            )
