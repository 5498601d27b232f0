"""How far a training is that code of any framework reports by steps of its own."""

from __future__ import annotations

from collections.abc import Mapping

from det_harness.trial.services import Services
from det_native.schema.manifests import CheckpointManifest
from det_native.trial import DistributedContext

#: What JSON and every database can have.
MOST_STEPS = 2**52


class CoreState:
    """How far a trial is, on its services.

    Attributes
    ----------
    distributed : DistributedContext
        Its ``rank`` says who reports.
    steps : int
        How many are done, as far as was reported.
    validated : dict
        The last steps and value of each metric that trials are compared by.
    """

    def __init__(self, services: Services, distributed: DistributedContext) -> None:
        self.services = services
        self.distributed = distributed
        self.steps = 0
        self.validated: dict[str, tuple[int, float]] = {}
        self._begun = False
        self._restored: CheckpointManifest | None = None
        services.count.ask(lambda: self.steps)

    def validated_after(self, steps: int, metrics: Mapping[str, float]) -> None:
        """Note the metrics of a validation after so many steps."""

    def pass_rows(self) -> None:
        """Report what was gathered so far, before what comes next."""

    def begin(self, first_steps: int) -> None:
        """Have the training begin, unless it has: from the checkpoint that was read, or as its first steps tell.

        Code that has found the checkpoint by itself goes on behind it; code that does not is at its beginning.
        """
        if self._begun:
            return
        self._begun = True
        resume = self.services.checkpoints.resume
        batch = 0
        if self._restored is not None:
            batch = self._restored.batch
        elif resume is not None and first_steps > resume.batch:
            batch = resume.batch
        self.services.checkpoints.begin(batch)
        progress = self.services.schedule.progress
        self.steps = max(self.steps, batch)
        progress.batches = progress.last_checkpointed = self.steps

    def restored(self, manifest: CheckpointManifest) -> None:
        """Note that the files of a checkpoint were read: the one to continue from, if it is that."""
        resume = self.services.checkpoints.resume
        if resume is not None and manifest.uuid == resume.uuid:
            self._restored = manifest

    def done(self, steps: int) -> None:
        """Note that so many steps are done."""
        if steps > self.steps:
            self.steps = steps
            self.services.schedule.progress.batches = steps

    def text(self, name: str, text: str) -> None:
        """Keep a text with the trial."""
        recorder = self.services.recorder
        if recorder is not None:
            recorder.log_text(name, text)

    def log(self, steps: int, numbers: Mapping[str, float]) -> None:
        """Keep numbers of groups, as what the code logs by ``det.log()``."""
        if numbers:
            self.services.reporter.logged(steps, dict(numbers))
