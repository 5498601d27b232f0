"""Hugging Face's Trainer reports to det_native: ``det.transformers.DetCallback``."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from transformers import TrainerCallback
from transformers.trainer_utils import get_last_checkpoint

from det_native.errors import ArgumentError
from det_native.trainers.reports import TrainerReports

if TYPE_CHECKING:
    from transformers import TrainerControl, TrainerState, TrainingArguments

    from det_native.core import Context

__all__ = ["DetCallback"]

_SUMMARY = ("train_runtime", "train_samples_per_second", "train_steps_per_second", "total_flos", "train_loss")
_USER_DATA = "my_data.json"


class DetCallback(TrainerCallback):
    """Has a ``transformers.Trainer`` report its metrics, keep its checkpoints, end when asked to, and go on later.

    The source is ``determined.transformers.DetCallback`` of Determined 0.38. As there, metrics have the Trainer's names
    (``loss``, ``eval_loss``), and ``searcher.max_length`` has to say the same as the arguments. Unlike there it may be
    left out, and a training that is asked to end ends in order, without an exception.

    Parameters
    ----------
    core_context : det.core.Context
        Of ``det.core.init()`` or ``det.experimental.core.init()``.
    args : transformers.TrainingArguments
        Those of the Trainer. Its ``resume_from_checkpoint`` is set where the trial continues:
        ``trainer.train(resume_from_checkpoint=args.resume_from_checkpoint)``.
    filter_metrics : sequence of str, optional
        Only metrics whose name has one of these in it are reported.
    user_data : dict, optional
        Goes as ``my_data.json`` into every checkpoint.

    Raises
    ------
    ArgumentError
        If an argument makes no sense, or if the lengths of `args` and of the configuration differ.

    Examples
    --------
    >>> with det.core.init() as core_context:
    ...     args = transformers.TrainingArguments("out", eval_strategy="epoch", save_strategy="epoch")
    ...     callback = det.transformers.DetCallback(core_context, args)
    ...     trainer = transformers.Trainer(model, args, train_dataset=train, eval_dataset=test, callbacks=[callback])
    ...     trainer.train(resume_from_checkpoint=args.resume_from_checkpoint)
    """

    def __init__(
        self,
        core_context: Context,
        args: TrainingArguments,
        filter_metrics: Sequence[str] | None = None,
        user_data: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__()
        self.core_context = core_context
        self.filter_metrics = filter_metrics
        self.user_data = user_data
        self._reached = False
        self._reports = TrainerReports(core_context, "DetCallback")
        _check_length(self._reports, args)
        self.load_last_checkpoint(args)

    def load_last_checkpoint(self, args: TrainingArguments) -> None:
        """Put the checkpoint that the trial continues from into ``args.output_dir``, where the Trainer looks for it."""
        latest = self._reports.latest()
        if latest is None or getattr(args, "overwrite_output_dir", False):
            return
        folder = str(args.output_dir)
        self.core_context.checkpoint.download(latest, folder)
        args.resume_from_checkpoint = get_last_checkpoint(folder)  # type: ignore[no-untyped-call]

    def on_log(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        logs: Mapping[str, Any] | None = None,
        **others: Any,
    ) -> None:
        """Report what the Trainer logs: by the beginnings of their names, metrics of validations, tests or training."""
        groups: dict[str, dict[str, Any]] = {}
        for name, value in (logs or {}).items():
            if self._wanted(name) and name not in _SUMMARY:
                groups.setdefault(_group(name), {})[name] = value
        for group, metrics in groups.items():
            self._reports.report(group, state.global_step, metrics)
        if "validation" in groups and self._is_over(state):
            self._reports.complete(groups["validation"])

    def on_step_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **others: Any
    ) -> TrainerControl:
        """Report the progress; have a training that is asked to end save a checkpoint, and end."""
        self._reports.progress(state.global_step, state.max_steps)
        if self._reports.stops():
            control.should_save = control.should_training_stop = True
        return self._ended_by_search(state, control, epochs=0)

    def on_epoch_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **others: Any
    ) -> TrainerControl:
        """Have a stage of a search end that is counted in epochs."""
        return self._ended_by_search(state, control, epochs=round(state.epoch or 0))

    def _ended_by_search(self, state: TrainerState, control: TrainerControl, epochs: int) -> TrainerControl:
        if state.global_step < state.max_steps and self._reports.is_reached(steps=state.global_step, epochs=epochs):
            self._reached = True
            control.should_log = control.should_evaluate = control.should_save = control.should_training_stop = True
        return control

    def _is_over(self, state: TrainerState) -> bool:
        return self._reached or bool(state.global_step >= state.max_steps)

    def on_save(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **others: Any) -> None:
        """Keep the checkpoint that the Trainer has written."""
        name = f"checkpoint-{state.global_step}"
        folder = Path(str(args.output_dir))
        if self._reports.first:
            if self.user_data is not None:
                (folder / name / _USER_DATA).write_text(json.dumps(self.user_data), encoding="utf-8")
            self._reports.save(folder, state.global_step, selector=lambda path: path.startswith(f"{name}/"))

    def on_train_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **others: Any
    ) -> None:
        """End the searcher's operation with the last value of its metric, where no validation has at the end."""
        past = [row for row in state.log_history if self._reports.metric in row]
        if past and self._is_over(state):
            self._reports.complete(past[-1])

    def _wanted(self, name: str) -> bool:
        return not self.filter_metrics or any(part in name for part in self.filter_metrics)


def _group(name: str) -> str:
    """Return the group of a metric by the beginning that the Trainer gives its name."""
    return "validation" if name.startswith("eval_") else "test" if name.startswith("test_") else "training"


def _check_length(reports: TrainerReports, args: TrainingArguments) -> None:
    """Refuse lengths that contradict each other: the search would take one, and the Trainer the other."""
    own = {"batches": args.max_steps if args.max_steps > 0 else None, "epochs": args.num_train_epochs}
    if own["batches"]:
        own["epochs"] = None
    for unit, here in own.items():
        asked = reports.length_in(unit)
        if asked is not None and asked != here:
            argument = "max_steps" if unit == "batches" else "num_train_epochs"
            raise ArgumentError(
                f"searcher.max_length asks for {asked} {unit}, and the TrainingArguments for "
                + " or ".join(f"{value} {name}" for name, value in own.items() if value)
                + f": set {argument}={asked} in them, or leave searcher.max_length out."
            )
