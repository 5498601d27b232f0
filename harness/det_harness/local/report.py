"""What is said and drawn of a trial in this process while it reports."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from det_harness.trial.services import PassingReporter, Reporter
from det_native.schema.manifests import CheckpointManifest
from det_native.schema.metric_names import companions

#: Is told of each report: batches done, and the newest metrics.
Observe = Callable[[int, Mapping[str, Any]], None]


class KernelReporter(PassingReporter):
    """Passes reports on, and keeps what this process has to know of them.

    Parameters
    ----------
    observe : callable, optional
        See `Observe`.

    Attributes
    ----------
    batches : int
        How many are done, as far as was reported.
    last_checkpoint : (str, CheckpointManifest) or None
        Where it lies; None before the first.
    """

    def __init__(self, reporter: Reporter, observe: Observe | None = None) -> None:
        super().__init__(reporter)
        self._observe = observe
        self.batches = 0
        self.last_checkpoint: tuple[str, CheckpointManifest] | None = None

    def training(self, batches: list[int], metrics: Mapping[str, list[float | None]]) -> None:
        """Pass on rows of training metrics."""
        self._reporter.training(batches, metrics)
        if batches:
            self.batches = max(self.batches, batches[-1])
            if self._observe is not None:
                self._observe(
                    batches[-1], {name: value for name, column in metrics.items() if (value := column[-1]) is not None}
                )

    def validation(self, batch: int, metrics: Mapping[str, Any]) -> None:
        """Pass on the metrics of one validation."""
        self._reporter.validation(batch, metrics)
        self.batches = max(self.batches, batch)
        if self._observe is not None:
            self._observe(batch, {name: value for name, value in metrics.items() if value is not None})

    def checkpoint(self, location: str, manifest: CheckpointManifest) -> None:
        """Pass on a checkpoint."""
        self._reporter.checkpoint(location, manifest)
        self.last_checkpoint = location, manifest

    def waiting(self, text: str) -> None:
        """Print what the training waits for, and pass it on."""
        print(f"The training {text or 'goes on'}.")
        self._reporter.waiting(text)


@contextmanager
def reporting(reporter: Reporter, *, test: bool) -> Iterator[Reporter]:
    """Give what a trial in the block reports to: `reporter`, or for a quick check one that says it too."""
    if test:
        print("Quick check: training on one batch, validating on one batch, saving one checkpoint.")
    yield PrintingReporter(reporter) if test else reporter
    if test:
        print("The quick check passed.")


class PrintingReporter(PassingReporter):
    """Says what happens while a quick check runs."""

    def __init__(self, reporter: Reporter) -> None:
        super().__init__(reporter)
        self._validates = True

    def training(self, batches: list[int], metrics: Mapping[str, list[float | None]]) -> None:
        """Pass on rows of training metrics and say them."""
        self._reporter.training(batches, metrics)
        print(f"  trained on one batch: {_listed({name: column[-1] for name, column in metrics.items()})}")

    def validation(self, batch: int, metrics: Mapping[str, Any]) -> None:
        """Pass on the metrics of one validation, or of the training in its place, and say them."""
        self._reporter.validation(batch, metrics)
        print(f"  {'validated' if self._validates else 'compared by'}: {_listed(metrics)}")

    def checkpoint(self, location: str, manifest: CheckpointManifest) -> None:
        """Pass on a checkpoint and say so; it goes with the check."""
        self._reporter.checkpoint(location, manifest)
        print(f"  saved a checkpoint of {manifest.size} bytes")

    def no_validation(self) -> None:
        """Pass on that nothing validates."""
        self._validates = False
        self._reporter.no_validation()


def _listed(metrics: Mapping[str, Any]) -> str:
    drawn = companions(metrics).values()
    shown = {name: value for name, value in metrics.items() if value is not None and name not in drawn}
    return ", ".join(
        f"{name} = {value:.4g}" if isinstance(value, float) else f"{name} = {value!r:.40}"
        for name, value in shown.items()
    )
