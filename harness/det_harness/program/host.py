"""Who the program's training calls are handed to while it is replayed on a worker."""

from __future__ import annotations

import logging
import threading
import weakref
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Literal

from det_harness.frameworks.base import harness_for
from det_harness.program.calls import CallMatcher, EarlierCall
from det_harness.program.earlier import Files, HostOfCalls, OtherCalls
from det_harness.program.inputs import InputCheck
from det_harness.program.made_up import MadeUpValues
from det_harness.program.runner import ProgramStop, WentOnError, swallowed
from det_harness.trial import rng
from det_harness.trial.services import Controller, Outcome, Services
from det_native.callsite import came_through
from det_native.errors import CheckpointError, TrialDefinitionError
from det_native.logged.place import taken_by
from det_native.schema.environment import TrialEnvironment

logger = logging.getLogger("det_harness")

_NO_LOOP = (
    "No loop has asked for what the training in {} gives: write `for batch in context.train(...)` there, or "
    "submit it by running the cells, the one of the loop too."
)


class WorkerHost(HostOfCalls):
    """Runs the controller at the program's recorded call; implements ``det_native.runtime.ProgramHost``.

    Parameters
    ----------
    check : InputCheck, optional
        Compares what the recorded call is given with what it was given in the notebook.
    files : callable
        Gives a folder with the files of the checkpoint of an earlier training, for a block.
    before_training : callable, optional
        Raises what stands in the way of training here.

    Attributes
    ----------
    failure : BaseException or None
        What the controller raised, if it did: the user's code around the call may hide it, but the run has failed.
    """

    def __init__(
        self,
        environment: TrialEnvironment,
        calls: CallMatcher,
        services: Services,
        check: InputCheck | None = None,
        *,
        read_blob: Callable[[str], bytes],
        files: Files,
        before_training: Callable[[], None] = lambda: None,
    ) -> None:
        self.environment = environment
        self.role: Literal["worker", "load"] = "worker"
        self.outcome: Outcome | None = None
        self.failure: BaseException | None = None
        self._calls = calls
        self._made_up = MadeUpValues(calls.source, self._is_compared)
        self._others = OtherCalls(calls, self._made_up, read_blob, files)
        self._services = services
        self._check = check
        self._before_training = before_training
        self._loop: _Loop | None = None
        self._awaited = ""  # where the recorded call of train() was made
        self._logging = ExitStack()
        self._thread: threading.Thread | None = None  # in which the recorded call was made

    def take_call(self, kind: str, payload: Any) -> Any:
        """Run the trial at the recorded call and stop the program there; another call gives what it has trained."""
        if not self._takes(kind):
            return self._other(payload, self._calls.earlier)
        self._thread = threading.current_thread()
        try:
            self._prepare(payload)
            self._take_what_is_logged()
            self.outcome = self._controller(payload).run()
            self._end_output()
        except SystemExit as error:
            self.failure = TrialDefinitionError(
                f"sys.exit({error.code!r}) was called during the training. To fail the trial, raise an exception; to "
                "end it early, call context.set_stop_requested(True)."
            ).with_traceback(error.__traceback__)  # the place of the call is what the user has to find
            raise self.failure from error
        except BaseException as error:
            self.failure = error
            raise
        if self.outcome.goes_on and self._calls.any_call:
            self._calls.goes_on = True
            return self.outcome.result
        if self._thread is not threading.main_thread():
            raise SystemExit  # ends the thread, and nothing is printed
        raise ProgramStop

    def take_loop(self, kind: str, payload: Any) -> Callable[[], Iterator[Any]]:
        """Return what begins the loop: the recorded call's batches, at whose end the program stops, or none.

        The call is the recorded one either where it is made, or where a loop of a later cell asks for its batches.
        """
        recorded, cell = self._takes(kind), self._calls.cell
        earlier = self._calls.earlier
        if recorded:
            self._awaited = self._calls.last_place

        def begin() -> Iterator[Any]:
            if not recorded and self._calls.cell == cell:
                self._other(payload, earlier)
                return iter(())
            if not recorded and not self._takes(kind):
                self._other(payload, self._calls.earlier)
                return iter(())
            batches = self._batches(payload)
            self._loop = _Loop(weakref.ref(batches), self._calls.last_place)
            return batches

        return begin

    def _takes(self, kind: str) -> bool:
        recorded = self._calls.is_recorded(kind)
        if self._calls.goes_on:
            raise TrialDefinitionError(
                f"The program calls {kind}() once more, in {self._calls.last_place}: a trial is one training. Make an "
                "experiment of each, or give the one call all of its steps."
            )
        if self._calls.taken:
            raise swallowed(self._calls.last_place)
        self._calls.taken = recorded
        if recorded and self.failure is not None:
            raise self.failure
        if recorded:
            self._made_up.begin_training()
        return recorded

    def _is_compared(self) -> bool:
        return self._check is not None and (self._check.is_exact or not self._calls.init_reached)

    def _other(self, payload: Any, earlier: EarlierCall) -> Any:
        try:
            return self._others.result(payload, earlier)
        except CheckpointError as error:
            self.failure = error  # the program may hide it
            raise

    def _prepare(self, payload: Any) -> None:
        """Compare what the training is given, without a draw; let it begin with the numbers of a run in the kernel."""
        with rng.preserved():
            if self._check is not None:
                self._check.put_texts()
            self._before_training()
            if self._check is not None:
                self._check.compare(payload)
            if isinstance(payload, type):
                self._others.check_class(payload)
        harness = harness_for(payload)
        if harness.begins_with_seed(payload):
            rng.seed_all(self.environment.trial_seed)
        else:
            harness.build(payload)

    def _take_what_is_logged(self) -> None:
        """Have what is logged kept from here on: until the program ends, which it may do after its training."""
        self._logging.enter_context(taken_by(self._services.recorder))

    def _end_output(self) -> None:
        """Have the cell that waits show nothing of what the program does after its training: it does that itself."""
        if self._services.recorder is not None:
            self._services.recorder.end_output()

    def _batches(self, payload: Any) -> Generator[Any, None, None]:
        assert self._loop is not None
        try:
            self._prepare(payload)
            self._take_what_is_logged()
            self._loop.controller = controller = harness_for(payload).loop(payload, self._services)
            yield from controller.batches()
            self._end_output()
        except GeneratorExit:
            self._end_output()
            self.outcome = controller.outcome
            raise
        except BaseException as error:
            self.failure = error
            raise
        self.outcome = controller.outcome
        raise ProgramStop

    def run(self, program: Callable[[], None]) -> Outcome:
        """Run the program under this host and return how its training ended.

        Raises
        ------
        TrialDefinitionError
            If the recorded call was not reached, or its end was swallowed.
        BaseException
            What the controller or the program raised. What the controller raised goes before what came of it.
        """
        from det_native.runtime import hosted

        try:
            with hosted(self), self._logging:
                program()
            self._end_loop()
        except BaseException as error:
            by_thread = self._thread is not None and self._thread is not threading.current_thread()
            if self._thread is not None and by_thread:
                self._thread.join()  # the program went on beside the call, until this error or the end of the cell
            if self.failure is not None:
                raise self.failure from None
            if by_thread and self.outcome is not None:
                return self.outcome
            if self._loop is not None and self._loop_was_left(error):
                assert self.outcome is not None
                return self.outcome
            if self._loop is None:
                if self._awaited and isinstance(error, WentOnError):
                    raise TrialDefinitionError(_NO_LOOP.format(self._awaited)) from error
                self._made_up.explain(error)
                raise
            self.failure = self._loop.in_words(error)
            if self.failure is error:
                raise
            raise self.failure from error
        if self.failure is not None:
            raise self.failure
        if self.outcome is None:
            ended = TrialDefinitionError("The program ended before its training call.")
            self._made_up.explain(ended)
            raise ended
        return self.outcome

    def _loop_was_left(self, error: BaseException) -> bool:
        """Return whether the program ended the training by leaving its loop, before `error` was raised.

        Raises
        ------
        TrialDefinitionError
            If the loop was neither run to its end nor left on purpose, and the program went on.
        """
        assert self._loop is not None
        batches, went_on = self._loop.batches(), isinstance(error, WentOnError)
        if self.outcome is not None and self._loop.failed_by(error):
            self.outcome = None
            return False
        if self.outcome is None and batches is not None:  # the program kept it, so nobody has seen how it was left
            self._loop.leave(batches, on_purpose=went_on)
        if self.outcome is None:
            if went_on:
                raise TrialDefinitionError(
                    f"The program went on after the loop that trains in {self._loop.place}, which was neither "
                    "run to its end nor left with `break` or `return`. If an exception left it that the program "
                    "caught: let it through to fail the trial."
                ) from error
            return False
        if not went_on:
            logger.info("After the loop that trains was left, the program ended with %r.", error)
        return True

    def _end_loop(self) -> None:
        """End a loop in whose body the program was stopped, as another slot had left it, if the program kept it."""
        batches = self._loop.batches() if self._loop is not None and self.outcome is None else None
        if self._loop is not None and batches is not None:
            self._loop.leave(batches, on_purpose=True)

    def _controller(self, payload: Any) -> Controller:
        return harness_for(payload).controller(payload, self._services)


@dataclass
class _Loop:
    """The loop of the recorded call; no strong reference, so that leaving it closes it."""

    batches: weakref.ref[Generator[Any, None, None]]
    place: str
    controller: Any = None

    def leave(self, batches: Generator[Any, None, None], *, on_purpose: bool) -> None:
        """End it: certainly as ``break`` does, or as the frame of the loop tells."""
        if self.controller is not None:
            self.controller.on_purpose = on_purpose
        batches.close()

    def in_words(self, error: BaseException) -> BaseException:
        """Return what an exception of the loop's body means, which no controller was around; often itself."""
        if self.controller is None:
            return error
        trace = error.__traceback__
        try:
            with self.controller.explained():
                raise error
        except BaseException as explained:  # noqa: BLE001 (returned)
            return explained.with_traceback(trace)  # the place in the body

    def failed_by(self, error: BaseException) -> bool:
        """Return whether an error left the loop that seemed to be left in order: an iterator around it raised it."""
        place = self.controller.left_at if self.controller is not None else None
        return place is not None and came_through(error, place)
