"""What the processes of a trial use of their machine."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from det_native.errors import ArgumentError
from det_native.public_names import PublicNames

if TYPE_CHECKING:
    from det_harness.core.run import CoreRun


class ProfilerContext(PublicNames):
    """``context.profiler``: measures processors, memory, network and GPUs, as ``profiling: {enabled: true}`` does."""

    _public: ClassVar[tuple[str, ...]] = ("off", "on")

    def __init__(self, run: CoreRun) -> None:
        self._run = run

    def on(self, sampling_interval: float = 1, samples_per_report: int = 10) -> None:
        """Measure from now on.

        Parameters
        ----------
        sampling_interval : float
            Seconds between two samples.
        samples_per_report : int
            Without effect: a sample is reported as it is measured.
        """
        for name, value in (("sampling_interval", sampling_interval), ("samples_per_report", samples_per_report)):
            if not isinstance(value, int | float) or value <= 0:
                raise ArgumentError(f"context.profiler.on({name}={value!r}): give a number above 0.")
        self._run.measure(float(sampling_interval))

    def off(self) -> None:
        """Measure no longer; where the configuration has it measured, that goes on."""
        self._run.measure(None)
