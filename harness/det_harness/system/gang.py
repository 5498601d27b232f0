"""Who measures what in a trial of several processes: each itself, and the first one reports for all."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path

from det_harness.system.sampler import Take, sampled
from det_native.schema.environment import Ranks
from det_native.schema.job import TrialJob
from det_native.schema.reports import SystemSample
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
    left, seen = LeftSamples(folder), dict[int, float]()

    def leave(samples: list[SystemSample]) -> None:
        for sample in samples:
            left.add(sample)

    def others() -> list[SystemSample]:
        if ranks.rank or ranks.size == 1:
            return []
        return only_new(left_samples(folder, ranks.size), seen)

    return sampled(
        job.config,
        lambda: job.devices,
        leave if ranks.rank else report,
        rank=ranks.rank,
        network=ranks.local_rank == 0,
        others=others,
    )
