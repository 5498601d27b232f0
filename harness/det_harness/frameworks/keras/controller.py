"""Trains a Keras model: Keras keeps its own loop, and we ask the schedule from a list of callbacks.

One controller serves native calls of ``fit`` and trial classes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import tensorflow as tf

from det_harness.frameworks.keras import model_state
from det_harness.frameworks.keras.comparison import Comparison
from det_harness.frameworks.keras.data import make_feed
from det_harness.frameworks.keras.loop import TrainingCallbacks
from det_harness.frameworks.keras.model_state import load_weights
from det_harness.frameworks.keras.randomness import RandomnessCheck
from det_harness.frameworks.keras.validation import ValidationFeed
from det_harness.trial.driver import Driver, TrainingPort
from det_harness.trial.lengths import in_whole_epochs
from det_harness.trial.services import Outcome, Services
from det_native.keras.caches.reading import damage_behind
from det_native.keras.native import FitCall

__all__ = ["KerasController", "in_whole_epochs", "load_weights"]


class KerasController(TrainingPort):
    """Runs one trial of a captured call of ``fit``: Keras's loop has the batches, `driver` what is due between them.

    Parameters
    ----------
    call : FitCall
        The user's model, data, callbacks and arguments.
    services : Services
        Schedule, reports and checkpoints.
    """

    validated_by = "the validation of model.fit()"

    def __init__(self, call: FitCall, services: Services) -> None:
        self.call = call
        self.services = services
        call.context.use_environment(services.environment)
        call.check(services.environment)
        self.steps = call.steps_per_epoch(services.environment)
        schedule = services.schedule
        schedule.periods = in_whole_epochs(schedule.periods, services.environment, self.steps)
        self.feed = make_feed(call, services.environment, self.steps)
        self._randomness = RandomnessCheck()
        self.validation_feed = ValidationFeed(call, services.environment, services.validation_batches)
        self.driver = Driver(services, self)
        self.comparison = Comparison(call, services)

    def run(self) -> Outcome:
        """Train to the end; return Keras's ``History`` as the result."""
        call, schedule = self.call, self.services.schedule
        model_state.build(call, self.feed.first)
        model_state.seed_random_layers(call.model, self.services.environment.trial_seed)
        with ExitStack() as restored:
            folder = restored.enter_context(self.services.checkpoints.restore())
            if folder is not None:
                schedule.restore(model_state.progress_of(folder))
                self.validation_feed.restore(folder)
            self._callbacks = callbacks = TrainingCallbacks(self, folder, restored)
            try:
                self._fit()
            except BaseException:
                callbacks.broken_off()
                raise
            finally:
                callbacks.leave_model()
                self._close()
        callbacks.finish()
        return self.driver.finish(call.model.history)

    def epochs(self) -> int:
        """Return the number of the last epoch, counted as Keras's ``epochs`` does."""
        initial = int(self.call.arguments["initial_epoch"])
        return initial + math.ceil(self.services.schedule.periods.length / self.steps)

    def verbosity(self) -> int:
        """Return what to print: as asked for in the user's process, a line per epoch on workers.

        Of a minimal loop nothing: Keras would count the batches of a whole epoch, of which one is trained.
        """
        if self.services.validation_batches is not None:
            return 0
        asked = self.call.arguments["verbose"]
        asked = 1 if asked == "auto" else int(asked)
        return min(asked, 1) * 2 if self.call.context.role == "worker" else asked

    def stop_asked(self) -> bool:
        """Return whether the user's code, the master or a signal asks for an early end."""
        return self.services.stop_requested() or self.call.context.get_stop_requested()

    # -- for the driver

    def report(self) -> None:
        """Report the training metrics that were not reported yet."""
        self._callbacks.report()

    @contextmanager
    def validation(self) -> Iterator[dict[str, Any] | None]:
        """Validate the model as it is, in the middle of an epoch or after it."""
        if self.validation_feed.x is not None:
            found = self._evaluate()
        else:  # the metrics of training stand in
            found = dict(self._callbacks.logs) if self.services.schedule.progress.batches else {}
        self.comparison.validated(found)
        yield found or None

    def save(self) -> None:
        """Take a checkpoint of the present state."""
        schedule = self.services.schedule

        def write(folder: Path) -> None:
            callbacks = self._callbacks
            model_state.save(folder, self.call, schedule.snapshot(), callbacks.callbacks, callbacks.logs)
            self.feed.save(folder)
            self.validation_feed.save(folder)

        self._randomness.look(self.call.model)
        self.services.checkpoints.save(schedule.progress.batches, write)

    def wait(self) -> None:
        """Block until every checkpoint is published."""
        self.services.checkpoints.wait()

    def _evaluate(self) -> dict[str, Any]:
        running = model_state.metric_values(self.call.model)
        found = self.call.original("evaluate")(
            **self.validation_feed.arguments(),
            callbacks=self._callbacks,
            return_dict=True,
            _use_cached_eval_dataset=True,
        )
        # The metrics of training are the same objects.
        model_state.set_metric_values(self.call.model, running)
        return {f"val_{name}": value for name, value in found.items()}

    def _close(self) -> None:
        self.feed.close()
        self.validation_feed.close()

    def _fit(self) -> None:
        arguments = self.call.arguments
        given: dict[str, Any] = {
            **self.validation_feed.queue_arguments(),
            "epochs": self.epochs(),
            "initial_epoch": arguments["initial_epoch"],
            "steps_per_epoch": self.steps,
            "class_weight": arguments["class_weight"],
            "shuffle": False,  # the feed has shuffled
            "validation_data": self.validation_feed.x,
            "validation_steps": self.validation_feed.steps,
            "validation_freq": arguments["validation_freq"],
            **self.feed.arguments(self.services.schedule.progress.batches),
            **self.call.extra,
        }
        try:
            self.call.original("fit")(callbacks=self._callbacks, **given)
        except (tf.errors.OpError, StopIteration) as error:
            for theirs in (self.feed.error, self.validation_feed.error):
                if theirs is not None and not isinstance(theirs, StopIteration):
                    raise theirs from error
            damage = damage_behind(error)
            if damage is not None:
                raise damage from error
            raise
