"""The place inside Keras's own loop where the schedule is asked: a list of callbacks that holds the user's.

An epoch's end is one moment for Keras and for the schedule: what is due at its last batch is done after Keras
has validated and the user's callbacks have seen the epoch's metrics. So nothing is validated twice, and a checkpoint
taken there continues with the next epoch.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any, Protocol

from det_harness.frameworks.keras import model_state
from det_harness.frameworks.keras.batch_values import BatchValues, MeanState
from det_harness.frameworks.keras.checkpoints import KerasCheckpoints
from det_harness.frameworks.keras.comparison import Comparison
from det_harness.frameworks.keras.data import only_the_last_is_smaller
from det_harness.frameworks.keras.epoch_lengths import EpochLengths
from det_harness.frameworks.keras.epoch_reports import EpochReports, as_number
from det_harness.frameworks.keras.feed import Feed
from det_harness.frameworks.keras.hooks import AddedHooks, NamingCallbacks
from det_harness.frameworks.keras.ranks import Ranks
from det_harness.frameworks.keras.training_step import Told, TrainingStep
from det_harness.trial import activity
from det_harness.trial.driver import Driver
from det_harness.trial.metrics import check_names
from det_harness.trial.schedule import Train
from det_harness.trial.services import Services
from det_native.errors import InvalidDataError
from det_native.heap.ownership import is_users_module
from det_native.keras.callbacks import Callback
from det_native.keras.generations import keras2
from det_native.keras.native import FitCall
from det_native.logged.place import only_logged
from det_native.schema.numbers import shown_number

# Rows of training metrics wait at most so long (seconds) before they are reported.
_REPORT_INTERVAL = 0.25


class Training(Protocol):
    """What the callbacks ask of the controller that trains (a ``KerasController``)."""

    call: FitCall
    services: Services
    steps: int
    ranks: Ranks
    lengths: EpochLengths
    feed: Feed
    driver: Driver
    comparison: Comparison
    checkpoints: KerasCheckpoints
    training_step: TrainingStep | None

    def save_end(self, logs: dict[str, float]) -> None:
        """Save what the end of the training has made of the model, with its validation metrics; a collective call."""

    @property
    def validates_own(self) -> bool:
        """Whether the data that this rank validates on are its own part."""

    @property
    def averages(self) -> bool:
        """Whether training metrics are reported as means over the ranks."""

    def epochs(self) -> int:
        """Return the number of the last epoch, counted as Keras's ``epochs`` does."""

    def epochs_of_fit(self) -> int:
        """Return when Keras ends by itself."""

    def lengths_changed(self) -> None:
        """Make the periods that are given in epochs those of epochs as long as they are now."""

    def verbosity(self) -> int:
        """Return what to print, as Keras's ``verbose``."""

    def stop_asked(self) -> bool:
        """Return whether the user's code, the master or a signal asks for an early end."""

    def validate_epoch(self, epoch: int) -> dict[str, Any]:
        """Return the metrics of the validation at the end of an epoch, none where none is due."""


class TrainingCallbacks(NamingCallbacks):
    """The user's callbacks, and between them and Keras the place where the schedule is asked."""

    callbacks: list[Any]
    _mean_states: Callable[[Any], dict[str, MeanState]] | None = None  # as the metrics say

    def __init__(self, controller: Training, restored: ExitStack) -> None:
        verbose = controller.verbosity()
        # On workers each epoch is a line in the words of bars and views, with the same rounding.
        is_worker = controller.call.context.role == "worker"
        # Where a live view takes the place of Keras's bar, only the log has these lines.
        line = None if not verbose else partial(print, flush=True) if controller.call.verbose == 2 else _log_line
        self._epoch_line = line if is_worker else controller.call.log_line
        super().__init__(
            self._given(controller.call),
            add_history=True,
            add_progbar=verbose != 0 and not is_worker,
            model=controller.call.model,
            verbose=verbose,
            epochs=controller.epochs(),
            steps=controller.steps,
        )
        self._controller = controller
        self._own_callbacks = bool(controller.call.callbacks())
        self._schedule = controller.services.schedule
        self._context, self._stop_requested = controller.call.context, controller.services.stop_requested
        self._restored = restored
        self._rows: list[tuple[int, Any]] = []
        self._epochs = EpochReports(controller.call, controller.services, self._params_of_history, self._history)
        self._done = self._schedule.progress.batches
        self._seen = self._done
        controller.services.count.ask(lambda: self._seen)
        self._epoch_start, self._steps = 0, controller.lengths.steps
        self._until = 0
        self._report_at = 0.0
        self._cut = self._finished = False
        self._counts = True
        self._train_function: Any = None
        smaller_last = only_the_last_is_smaller(controller.call, controller.services.environment)
        self._values = BatchValues(controller.steps, self._mean_states, smaller_last=smaller_last)
        self.logs: dict[str, float] = controller.checkpoints.logs
        self.hooks = AddedHooks(self.callbacks)
        self._ranks = controller.ranks
        self._together = controller.training_step if controller.ranks.several else None
        self._ends = False
        self._own_state: list[Any] = []
        self._of_epoch: dict[str, Any] = {}
        self._before_idle: list[Any] | None = None
        self._digest_at_end: bytes | None = None
        self._validated: tuple[int, bytes] | None = None

    def _params_of_history(self) -> dict[str, int]:
        controller = self._controller
        return {"verbose": controller.call.verbose, "epochs": controller.epochs(), "steps": controller.steps}

    @contextmanager
    def without_users(self) -> Iterator[None]:
        """Have hooks call nobody in the block, for a validation that plain Keras would not make."""
        (callbacks, self.callbacks), validated = (self.callbacks, []), self._validated
        try:
            yield
        finally:
            self.callbacks, self._validated = callbacks, validated

    def weights_changed(self) -> bool:
        """Return whether a callback has changed the weights since they were validated at this batch; collective.

        ``EarlyStopping`` of Keras 2 puts the best ones back at the end of an epoch that has its own validation.
        """
        if self._validated is None or self._validated[0] != self._done:
            return False
        return self._ranks.agree(self._validated[1] != self._weights_digest())

    def _note_validated(self) -> None:
        """Note the weights that the metrics of this batch are of; without callbacks, nobody changes them."""
        if self._own_callbacks:
            self._validated = (self._done, self._weights_digest())

    def _weights_digest(self) -> bytes:
        return b"" if self._controller.services.communicator.rank else model_state.weights_digest(self.model)

    def _given(self, call: FitCall) -> list[Any]:
        """Return the user's callbacks."""
        return call.callbacks()

    @property
    def done(self) -> int:
        """Batches done so far."""
        return self._done

    @property
    def _wants_batches(self) -> bool:
        """Whether a callback does anything at the end of a batch."""
        return bool(self._should_call_train_batch_hooks)

    def _leave_validation_out(self) -> None:
        """Have the epoch end without a validation."""
        keras2.leave_validation_out(self.model)

    def on_train_begin(self, logs: Any = None) -> None:
        super().on_train_begin(logs)
        self._enter_model()

    def _enter_model(self) -> None:
        """Put into the model what shows us the iterator of its data."""
        model = self.model
        keras2.begin_fit(model, self)
        # With the first batch it is known that there is one; from then on the feed's function is called directly.
        self._train_function = train = model.train_function

        def first(iterator: Any) -> Any:
            model.train_function = step = self._controller.checkpoints.attach(train, self._done)
            seeds = keras2.own_seeds(model) if self._done else []
            logs = step(iterator)
            keras2.set_own_seeds(model, seeds)  # a run that was never stopped has made no graph once more
            self._restored.close()  # what the step has made first has been read by now
            return logs

        model.train_function = first

    def maybe_load_initial_counters_from_ckpt(self, _: int, initial_epoch: int, mode: Any = None) -> tuple[int, int]:
        """Say where training starts; Keras asks this before its first epoch."""
        epochs, step = self._controller.lengths.place(self._done)
        ended = self._done >= self._schedule.periods.length or self._schedule.progress.ended
        if step == 0 or ended:
            self._restore()
            self._act()
        if ended or self._finished:
            return self._controller.epochs(), 0
        return initial_epoch + epochs, step

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        super().on_epoch_begin(epoch, logs)
        initial = int(self._controller.call.arguments["initial_epoch"])
        lengths = self._controller.lengths
        self._epoch_start, self._steps = lengths.start_of(epoch - initial), lengths.steps_of(epoch - initial)
        if self._done > self._epoch_start:
            self._restore()
            self._values.begin_epoch(self.model, self._done - self._epoch_start, steps=self._steps)
            self._act()
        else:
            self._values.begin_epoch(self.model, steps=self._steps)

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        super().on_train_batch_begin(batch, logs)
        if self._together is not None:
            stops = self._controller.stop_asked()
            if self._together.idle_last and batch == self._steps - 1:
                self._before_idle = model_state.metric_values(self.model)
            self._together.ask(Told(stops, reports=time.monotonic() >= self._report_at, ends=self._ends))

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        self._seen = done = self._epoch_start + batch + 1
        if self._wants_batches:
            super().on_train_batch_end(batch, logs)
        self._done = done
        check_names(logs, done, "fit()")
        self._rows.append((done, logs))
        if done - self._epoch_start >= self._steps:
            self._controller.feed.all_read()
        if self._together is None:
            stops, reports = self._stop_requested() or self._context.stop_requested, time.monotonic() >= self._report_at
        else:
            stops, reports = self._told(self._together.told())
        if done >= self._until or stops:
            self._pause(stops)
        elif reports or self.model.stop_training or not self._values.settled or done - self._epoch_start >= self._steps:
            self.report(ends=self._ends_epoch())
        if self._together is not None and (self.model.stop_training or done - self._epoch_start == self._steps):
            # Now, for a validation uses the same metrics.
            numbers = {name: as_number(logs[name]) for name in logs or {}}
            self._of_epoch = self._ranks.merged(self.model, numbers, states=self._before_idle)
            self._before_idle = None

    def on_test_begin(self, logs: Any = None) -> None:
        self._own_state = self._ranks.swap_in_state(self.model)
        self._counts = self._controller.validates_own  # data may have another length when they were read
        super().on_test_begin(logs)

    def on_test_batch_end(self, batch: int, logs: Any = None) -> None:
        super().on_test_batch_end(batch, logs)
        activity.step()

    def on_test_end(self, logs: Any = None) -> None:
        if self._ranks.several:
            # Keras returns the same dictionary.
            logs.update(self._ranks.merged(self.model, logs, counts=self._counts))
            self._ranks.swap_back_state(self.model, self._own_state)
        self._note_validated()
        named = {f"val_{name}": value for name, value in (logs or {}).items()}
        plain = dict(logs or {})  # theirs, as in Keras: what they add to it is no metric of the validation
        for callback in self.callbacks:
            callback.on_test_end(dict(named) if isinstance(callback, Callback) else plain)

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        if self._cut:
            return
        validation = {name: value for name, value in (logs or {}).items() if name.startswith("val_")}
        if self._ranks.several:
            self._share_epoch(logs)
        self._epochs.look()
        if self._controller.call.validation is None:  # the metrics of training stand in
            self._note_validated()
        super().on_epoch_end(epoch, logs)
        added = self._epochs.ended(epoch, self._done, logs or {})
        self.logs = {**self.logs, **added}
        self._controller.comparison.epoch_ended(self.logs)
        validation |= self._epochs.of_validation(added, validated=bool(validation))
        if self._epoch_line is not None:
            values = ", ".join(f"{name} {_shown(value)}" for name, value in (logs or {}).items())
            self._epoch_line(f"Epoch {epoch + 1}/{self._controller.epochs()}: {values}")
        whole = self._done - self._epoch_start >= self._steps
        self._schedule.trained(self._done)
        self._ended_by_callback()
        if whole:
            self._controller.feed.epoch_ended(epoch + 1 - int(self._controller.call.arguments["initial_epoch"]))
            self._check_length()
        self._act(validation)
        if not self._finished and self._ended_by_callback():  # in the hooks of a validation
            self._act()

    def _check_length(self) -> None:
        """Refuse data whose epochs become longer or shorter on several slots: the step of training counts on theirs."""
        steps = self._controller.lengths.steps
        if self._ranks.several and steps != self._steps and not self.model.stop_training:
            raise InvalidDataError(
                f"The training Sequence had {self._steps} batches for each slot in the last epoch, and has {steps} "
                "now: on several slots its length cannot change. Train on one slot, or pass steps_per_epoch to fit()."
            )

    def on_train_end(self, logs: Any = None) -> None:
        # A worker that has to leave goes on elsewhere, from before this.
        before, self._digest_at_end = self._digest_at_end, None
        checkpoints, here = self._controller.checkpoints, self._controller.services.users_process
        of_users = any(_is_users(callback.on_train_end) for callback in self.callbacks)
        at_end = before is not None and of_users
        digest = checkpoints.digest_of_streams if here else partial(checkpoints.digest_of, self.callbacks)
        states = digest() if at_end else b""
        super().on_train_end(logs)
        if not self._finished:
            return
        changed = before is not None and model_state.digest(self.model) != before
        if self._ranks.agree(changed):
            self._controller.save_end(self.logs)
        elif at_end and digest() != states:
            checkpoints.save_end(self.callbacks, self.logs)

    def _ends_epoch(self) -> bool:
        """Whether the batch that is done is the last one of its epoch."""
        return self._done - self._epoch_start >= self._steps or bool(self.model.stop_training)

    def _ended_by_callback(self) -> bool:
        """Make what is done the whole training where a callback, of any rank, has set ``stop_training``."""
        self._agree_on_end()
        ended = bool(self.model.stop_training) and self._done < self._schedule.periods.length
        if ended:
            self._schedule.end_here()
        return ended

    def finish(self) -> None:
        """Save what is unsaved where Keras ended before the schedule did."""
        self._epochs.finish()
        if self._finished:
            return
        length = self._schedule.periods.length
        warnings.warn(
            f"The training data ended after {self._done} of {length} batches; training ends with them.",
            UserWarning,
            stacklevel=2,
        )
        self._schedule.trained(self._done)
        self._schedule.request_stop()
        self._act()

    def broken_off(self) -> None:
        """Something was raised: report the batches that were done, and tell the schedule how many those are."""
        self.report(together=False)
        self._schedule.trained(self._done)

    def leave_model(self) -> None:
        """Take back what was put into the model."""
        model = self.model
        keras2.end_fit(model)
        if self._train_function is not None:
            model.train_function = self._train_function

    def _told(self, told: Told) -> tuple[bool, bool]:
        """Return whether all ranks are to stop, and to report; where a callback of one has ended training, all end."""
        self._ends = self._ends or self.model.stop_training
        self.model.stop_training = told.ends
        return told.stops, told.reports

    def _agree_on_end(self) -> None:
        """Have ``stop_training`` on all ranks where it is set on one."""
        if self._ranks.several:
            self.model.stop_training = self._ranks.agree(bool(self.model.stop_training) or self._ends)

    def _share_epoch(self, logs: Any) -> None:
        """Make the metrics of the epoch those of all ranks: callbacks go by them, and do the same on each."""
        logs.update({name: value for name, value in self._of_epoch.items() if name in logs})
        self._of_epoch = {}

    def _pause(self, stops: bool) -> None:
        """A batch is done after which something may be due; at an epoch's end it waits until Keras has ended it."""
        if stops or (self._together is None and self._controller.stop_asked()):
            self._schedule.request_stop()
        self._schedule.trained(self._done)
        whole = self._done - self._epoch_start >= self._steps
        if self._done >= self._schedule.periods.length and not whole:
            self.model.stop_training = True
        if whole or self.model.stop_training or not self._values.settled:
            self.report(ends=self._ends_epoch())  # while the metrics are still those of the epoch
        if whole or self.model.stop_training:
            return
        self._act()
        if self._finished:
            # Stopped inside an epoch: the checkpoint continues there, so the epoch does not end.
            self._cut = True
        self._agree_on_end()
        if self.model.stop_training:  # by us, or by a callback that has seen a validation of this very batch
            self._leave_validation_out()

    def _act(self, validation: dict[str, Any] | None = None) -> None:
        """Do what is due, up to the next batch or the end.

        `validation` holds the metrics of Keras's own validation at the end of an epoch.
        """
        self._controller.lengths_changed()
        self.report()
        schedule = self._schedule
        # An epoch that ends within a scheduling unit, unvalidated, ends no workload.
        goes_on = self._done < self._until and not (validation or schedule.over or schedule.stop_requested)
        if not goes_on:
            self.hooks.workload_ends(self._done, self.logs)
        if validation:
            validation = self._controller.comparison.validated(validation)
        action = self._controller.driver.advance(validation)
        if isinstance(action, Train):
            self._until = min(self._until, action.until) if goes_on else action.until
            if not goes_on and not self.model.stop_training:
                self.hooks.workload_begins(self._done, action.until)
            return
        self._finished = True
        services = self._controller.services
        if not services.communicator.rank and not services.stop_requested():
            self._digest_at_end = model_state.digest(self.model)
        # Where Keras ends by itself it is left to: told to stop, it would not end its queues.
        if self._done - self._epoch_start < self._steps or not self._in_last_epoch():
            self.model.stop_training = True

    def _in_last_epoch(self) -> bool:
        controller = self._controller
        last = controller.epochs_of_fit() - int(controller.call.arguments["initial_epoch"]) - 1
        return self._epoch_start >= controller.lengths.start_of(last)

    def report(self, *, together: bool = True, ends: bool = False) -> None:
        """Report the training metrics of the batches that were not reported yet.

        Means over the ranks are a collective call; not `together`, each reports its own. Where an epoch `ends` with
        them, the last row waits for what callbacks add to it.
        """
        self._report_at = time.monotonic() + _REPORT_INTERVAL
        self._epochs.release()
        rows, self._rows = self._rows, []
        if not rows:
            return
        activity.step()
        names = dict.fromkeys(name for _, logs in rows for name in logs)
        columns = {name: [as_number(logs.get(name)) for _, logs in rows] for name in names}
        self.logs = {name: value for name in rows[-1][1] if (value := columns[name][-1]) is not None}
        batches = [batch for batch, _ in rows]
        more = self._values.columns(self.model, [batch - self._epoch_start for batch in batches], columns)
        found: dict[str, Any] = columns | more
        if together and self._controller.averages:
            found = self._ranks.averaged(found)
        self._epochs.report(batches, found, ends=ends)
        self._controller.comparison.trained(self.logs)

    def _restore(self) -> None:
        self._controller.checkpoints.restore(self.callbacks)


def _is_users(hook: Any) -> bool:
    """Whether a hook is code of the user's."""
    return is_users_module(getattr(hook, "__module__", None) or "")


def _log_line(text: str) -> None:
    with only_logged():
        print(text, flush=True)


def _shown(value: Any) -> str:
    number = as_number(value)
    return str(value) if number is None else shown_number(number)
