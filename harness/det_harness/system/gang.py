"""Who measures what in a trial of several processes: each itself, and the first one reports for all."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path

from det_harness.system.sampler import Take, sampled
from det_native.schema.environment import Ranks
from det_native.schema.job import TrialJob
from det_native.schema.rest import SystemSample
from det_native.schema.system_samples import LeftSamples, left_samples, only_new


def measured(job: TrialJob, ranks: Ranks, report: Take) -> AbstractContextManager[None]:
    """Measure in the block what this process of a trial uses.

    Parameters
    ----------
    ranks : Ranks
        Its place. All but the first leave their samples in their folders, where the first one finds them, and the
        master what comes after its end.
    report : callable
        Takes the samples of the first process.
    """
    folder = Path(job.directory)
    take, seen = report if ranks.rank == 0 else _Leaving(folder), dict[int, float]()

    def others() -> list[SystemSample]:
        if ranks.rank or ranks.size == 1:
            return []
        return only_new(left_samples(folder, ranks.size), seen)

    return sampled(job.config, lambda: job.devices, take, rank=ranks.rank, network=ranks.local_rank == 0, others=others)


class _Leaving:
    """Leaves the samples of this process in its folder."""

    def __init__(self, folder: Path) -> None:
        self._left = LeftSamples(folder)

    def __call__(self, samples: list[SystemSample]) -> None:
        for sample in samples:
            self._left.add(sample)
