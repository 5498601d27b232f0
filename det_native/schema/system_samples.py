"""Samples of what the processes of a trial use: thinned where there are many, and those that one process leaves."""

from __future__ import annotations

import logging
import os
from collections import deque
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from det_native.schema.ranks import rank_folder
from det_native.schema.reports import SystemSample

logger = logging.getLogger(__name__)

#: Of more samples of one process of a trial than these, neighbours are merged to half as many.
MOST_SAMPLES = 1_000

FILE_NAME = "system.json"
_LEFT = 100
_SAMPLES: TypeAdapter[list[SystemSample]] = TypeAdapter(list[SystemSample])
# What a peak is more telling of than a mean.
_LARGEST = "memory_bytes"


@dataclass(frozen=True)
class Weighed:
    """A sample of one process, merged of `count` of them, which the run of that number has reported."""

    sample: SystemSample
    run: int = 0
    count: int = 1


def thin(samples: Sequence[Weighed], most: int) -> list[Weighed]:
    """Merge neighbours where there are more than `most` samples, to about that many, evenly over time.

    Parameters
    ----------
    samples : sequence of Weighed
        Of one process, in order.

    Returns
    -------
    list of Weighed
        A merged one has the time and the run of the last of its samples. It has their mean, by their counts; of memory
        it has the largest.
    """
    if len(samples) <= most:
        return list(samples)
    times = [each.sample.time for each in samples]
    begin, width = min(times), (max(times) - min(times)) / most
    groups: list[list[Weighed]] = []
    before = -1
    for each in samples:
        place = min(int((each.sample.time - begin) / width), most - 1) if width > 0 else 0
        if place != before:
            groups.append([])
        groups[-1].append(each)
        before = place
    return [_merged(group) for group in groups]


def thin_by_rank(samples: Iterable[SystemSample], most: int) -> list[SystemSample]:
    """Return the samples of each process as :func:`thin` leaves them, by time."""
    by_rank: dict[int, list[Weighed]] = {}
    for sample in samples:
        by_rank.setdefault(sample.rank, []).append(Weighed(sample))
    thinned = [each.sample for group in by_rank.values() for each in thin(group, most)]
    return sorted(thinned, key=lambda sample: (sample.time, sample.rank))


def _merged(group: Sequence[Weighed]) -> Weighed:
    last = group[-1]
    if len(group) == 1:
        return last
    metrics = {}
    for name in dict.fromkeys(name for each in group for name in each.sample.metrics):
        found = [(each.sample.metrics[name], each.count) for each in group if name in each.sample.metrics]
        if name.endswith(_LARGEST):
            metrics[name] = max(value for value, _ in found)
        else:
            metrics[name] = sum(value * count for value, count in found) / sum(count for _, count in found)
    sample = SystemSample(time=last.sample.time, rank=last.sample.rank, metrics=metrics)
    return Weighed(sample, last.run, sum(each.count for each in group))


class LeftSamples:
    """A file with the last samples of a process that does not report: the first one does it for all.

    Parameters
    ----------
    folder : Path
        The process's own.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / FILE_NAME
        self._samples: deque[SystemSample] = deque(maxlen=_LEFT)

    def add(self, sample: SystemSample) -> None:
        """Leave one more.

        Raises
        ------
        OSError
            If it cannot be written; what was left before is still there.
        """
        self._samples.append(sample)
        temporary = self._path.with_name(f".{FILE_NAME}.{os.getpid()}")
        try:
            temporary.write_bytes(_SAMPLES.dump_json(list(self._samples)))
            temporary.replace(self._path)
        except OSError:
            with suppress(OSError):
                temporary.unlink()
            raise


def left_samples(run_folder: Path, size: int) -> list[SystemSample]:
    """Return what the processes of a run but the first have left, by time; of `size` processes in all."""
    found: list[SystemSample] = []
    for rank in range(1, size):
        path = rank_folder(run_folder, rank) / FILE_NAME
        try:
            found += _SAMPLES.validate_json(path.read_bytes())
        except FileNotFoundError:
            continue
        except (OSError, ValidationError) as error:
            logger.warning("%s cannot be read: %s", path, error)
    return sorted(found, key=lambda sample: (sample.time, sample.rank))


def only_new(samples: Iterable[SystemSample], last: dict[int, float]) -> list[SystemSample]:
    """Return the samples that are later than the last one of their process; `last`, times by rank, is kept up to date.

    Samples come more than once: from a process itself and from the file that it has left.
    """
    fresh = []
    for sample in samples:
        if sample.time > last.get(sample.rank, -1.0):
            last[sample.rank] = sample.time
            fresh.append(sample)
    return fresh
