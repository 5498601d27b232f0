"""A thread that measures what a trial uses, and hands it on, from the begin of the trial to its end."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from det_harness.system.meter import Meter
from det_harness.system.usage import Reading, metrics_between
from det_native.errors import DetError
from det_native.schema.nvml import begun_once
from det_native.schema.reports import SystemSample

logger = logging.getLogger("det_harness")

# The first sample does not wait for a whole period: many trials are over by then.
_FIRST_SECONDS = 1.0
# The last one is left out if there was one just before.
_LAST_SECONDS = 0.2
# A driver that hangs is no reason for a training not to end.
_CLOSE_SECONDS = 5.0

Take = Callable[[list[SystemSample]], None]


@contextmanager
def sampled(
    config: Mapping[str, Any],
    devices: Callable[[], Sequence[str]],
    take: Take,
    *,
    rank: int = 0,
    network: bool = True,
    others: Callable[[], list[SystemSample]] = list,
) -> Iterator[None]:
    """Measure what this process uses as long as the block lasts, if the configuration does not switch that off.

    Parameters
    ----------
    devices : callable
        Tells the GPUs of this process; asked in the thread, for it may take long.
    take : callable
        Is given the samples, in the thread.
    network : bool
        Whether this is the process that measures the network of this machine.
    others : callable
        Returns the new samples of other processes, to be given to `take` too.
    """
    settings = config.get("profiling") or {}
    if not settings.get("enabled"):
        yield
        return
    sampler = _Sampler(float(settings.get("period") or 5.0), devices, take, rank, network, others)
    try:
        yield
    finally:
        sampler.close()


class _Sampler:
    """The thread; what goes wrong in it ends the measuring with a line in the log, and never the training."""

    def __init__(
        self,
        period: float,
        devices: Callable[[], Sequence[str]],
        take: Take,
        rank: int,
        network: bool,
        others: Callable[[], list[SystemSample]],
    ) -> None:
        self._period, self._devices, self._take = period, devices, take
        self._rank, self._network, self._others = rank, network, others
        # So that times only rise, whatever is done to the machine's clock.
        self._offset = time.time() - time.monotonic()
        self._closed = threading.Event()
        self._given_up = False
        self._thread = threading.Thread(target=self._run, name="det-system", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Take a last sample, and end."""
        self._closed.set()
        self._thread.join(_CLOSE_SECONDS)
        if self._thread.is_alive():
            self._given_up = True
            logger.warning("The last sample of what the trial uses is left out: it takes longer than a few seconds.")

    def _run(self) -> None:
        try:
            with begun_once():
                self._sample()
        except (DetError, OSError, ImportError, ValueError, RuntimeError) as error:
            logger.warning(
                "What the trial uses of its machine is no longer measured: %s: %s", type(error).__name__, error
            )

    def _sample(self) -> None:
        meter = Meter(self._devices(), network=self._network)
        before = meter.read()
        pause = min(_FIRST_SECONDS, self._period)
        first = True
        while True:
            over = self._closed.wait(pause)
            now = meter.read()
            if first or not over or now.moment - before.moment >= _LAST_SECONDS:
                self._hand_on(before, now)
                before, first = now, False
            if over:
                return
            pause = self._period

    def _hand_on(self, before: Reading, now: Reading) -> None:
        samples = self._others()
        metrics = metrics_between(before, now)
        if metrics:
            moment = round(now.moment + self._offset, 3)
            samples = [*samples, SystemSample(time=moment, rank=self._rank, metrics=metrics)]
        if samples and not self._given_up:
            self._take(samples)
