"""Whether the recorded call is given what it was given in the notebook; what can be put right is."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from typing import Any, Literal

from det_harness.program.clock_values import put_clock_values
from det_harness.program.input_advice import advice, bound_in
from det_harness.program.put_right import notebook_value, put_right, put_state
from det_native.errors import InputDiffersError, MasterError
from det_native.proof.call import Difference, Severity, differences, in_words, severity_of
from det_native.proof.clock_values import Slot
from det_native.proof.content import content_of
from det_native.proof.inputs import Input, as_inputs
from det_native.proof.lookups import identities_of, read_by
from det_native.schema.job import TrialJob
from det_native.schema.manifests import Program
from det_native.schema.proof import SECRET, CallProof
from det_native.schema.rest import CaptureRow
from det_native.schema.sampling import trial_seeds

logger = logging.getLogger("det_harness")

_POLL_SECONDS = 0.1
_SILENT_SECONDS = 60.0
_MOST_LINES = 12

_WIDER = "It is so with all cells that can run again, too."
_HEADLINE = "Inputs of the training call differ from the notebook:"
_PUT_RIGHT = "notebook's value"
_DIFFERS = "differs"


def has_notebooks_seed(job: TrialJob) -> bool:
    """Whether this trial draws from the seed that the notebook, or script, had: its first sample's."""
    proof = job.bundle.proof
    if proof is not None:
        return proof.seed == job.trial_seed
    experiment_seed = (job.config.get("reproducibility") or {}).get("experiment_seed")
    return experiment_seed is not None and next(trial_seeds(experiment_seed)) == job.trial_seed


class InputCheck:
    """Compares the inputs of the recorded call, once, before anything is done with them.

    Parameters
    ----------
    proof : CallProof
    program : Program
    mode : {"error", "warn"}
        What a difference is that cannot be put right.
    title : callable
        Gives the name of a cell, by its index.
    read_blob : callable
        Gives the content of a value that travels, by its hash.
    exact : bool
        Whether the trial has the hyperparameters and the seed of the notebook. In others only what ``init()`` found
        there is put right, and nothing else is compared.
    fresh : bool
        Whether the trial begins. One that continues has the weights of its checkpoint, and was compared.
    add_rows : callable
        Takes rows for the report of the experiment.
    before : callable
        Is called before the comparison.
    placed : callable
        Gives a value that travelled with the paths that are here.
    widened : str
        What differed with the program that this one has replaced; empty if it is the first.

    Attributes
    ----------
    is_exact : bool
        As `exact`.
    """

    def __init__(
        self,
        proof: CallProof,
        program: Program,
        mode: Literal["error", "warn"],
        title: Callable[[int], str],
        *,
        read_blob: Callable[[str], bytes] | None = None,
        exact: bool = True,
        fresh: bool = True,
        add_rows: Callable[[list[CaptureRow]], object] = lambda rows: None,
        before: Callable[[], object] = lambda: None,
        placed: Callable[[Any], Any] = lambda value: value,
        widened: str = "",
    ) -> None:
        self._proof = proof
        self._program = program
        self._mode = mode
        self._title = title
        self._read_blob = read_blob
        self.is_exact = exact
        self._fresh = fresh
        self._add_rows = add_rows
        self._before = before
        self._placed = placed
        self._widened = widened
        self._models: frozenset[int] = frozenset()

    def put_clock_values(self, payload: Any) -> None:
        """Put the notebook's moments and drawn names in place of the worker's, before files are looked at."""
        if not self.is_exact:
            return
        try:
            changed = put_clock_values(self._proof, payload)
        except Exception as error:  # noqa: BLE001 (objects of the user's may raise anything; the training begins)
            logger.warning("Names made by clocks are the worker's own: %s", in_words(error))
            return
        rows = [self._clock_row(slot, value) for slot, value in changed[:_MOST_LINES]]
        for row in rows:
            logger.info("%s: %s.", row.what, row.note)
        if rows:
            self._add_rows(rows)

    def _clock_row(self, slot: Slot, value: Any) -> CaptureRow:
        note = f"{slot.value!r:.200} on the worker, {value!r:.200} in the notebook; the notebook's is used"
        made = self._made_in(slot.name)
        return CaptureRow(what=slot.path, how=_PUT_RIGHT, size=0, cell=made, status="already there", note=note)

    def compare(self, payload: Any) -> None:
        """Compare, and put right what can be.

        Raises
        ------
        InputDiffersError
            Naming each input that differs and cannot be put right, with both sides and the cells that make it.
        """
        self._before()
        inputs = getattr(payload, "inputs", None)
        if inputs is None:
            return
        if self._proof.not_compared:
            logger.warning("%s", self._proof.not_compared)
        try:
            parts, self._models = _parts_of(payload)
            found = differences(self._proof, parts, skipped=self._models)
        except Exception as error:  # noqa: BLE001 (comparing may fail, and keeps nothing from being trained)
            logger.warning("What reaches the training is not compared with the notebook's: %s", in_words(error))
            return
        self._put_states(found)
        rows: list[CaptureRow] = []
        decisive: list[Difference] = []
        settled: set[tuple[Any, ...]] = set()
        for difference in found:
            place = difference.here.place if difference.here is not None else None
            if place is not None and place in settled:
                continue  # it is reached in another way, too, and has been put right there
            row = self._settle(difference)
            if row is not None:
                rows.append(row)
                settled |= {place} if place is not None else set()
            elif self._is_decisive(difference):
                decisive.append(difference)
        if rows and hasattr(payload, "inputs_changed"):
            payload.inputs_changed()
        for row in rows:
            logger.warning("%s: %s.", row.what, row.note)
        if rows:
            self._add_rows(rows)
        if decisive:
            self._refuse(decisive)

    def failed(self, error: Exception) -> InputDiffersError | None:
        """Return what an error means that kept the program from the recorded call; None where it means itself.

        The wider program is run only because the first one gave other inputs: that is what the user has to know.
        """
        if not self._widened or not self.is_exact:
            return None
        what = f"Running all cells that can run again was tried, too; it failed: {type(error).__name__}: {error}"
        return InputDiffersError(f"{self._widened}\n{what}", advice((), self._program, self._title))

    def _settle(self, difference: Difference) -> CaptureRow | None:
        """Put a difference right if it can be, and return its row; None for one that has none, or that is decisive."""
        there = difference.there
        if difference.severity is Severity.ROUNDING:
            logger.info("The same as in the notebook but for last digits: %s.", _title_of(difference))
            return None
        if not self._is_concerned(difference) or (difference.fact.role == "weights" and not self._fresh):
            return None
        if difference.severity is Severity.PLAIN and self._put_right(difference):
            note = f"{_sides(difference)}; the notebook's is used"
            if there is not None and not there.before_init:
                note += ", in trials with the notebook's hyperparameters and seed"
            return self._row(difference, _PUT_RIGHT, note)
        if self._is_decisive(difference) or not self.is_exact:
            return None
        if difference.severity is Severity.NOT_COMPARED:
            return self._row(difference, "not compared", "it cannot be read here, or could not be in the notebook")
        return self._row(difference, _DIFFERS, _sides(difference))

    def _is_concerned(self, difference: Difference) -> bool:
        return self.is_exact or (difference.there is not None and difference.there.before_init)

    def _put_states(self, found: Sequence[Difference]) -> None:
        """Put objects right by their states, all before any is compared: an optimizer's has the weights of a model."""
        for difference in found:
            there, here = difference.there, difference.here
            plain = difference.severity is Severity.PLAIN and self._is_concerned(difference)
            if plain and there is not None and here is not None and self._read_blob is not None:
                put_state(here, there, self._read_blob)

    def _is_decisive(self, difference: Difference) -> bool:
        severity = difference.severity
        if severity is Severity.PLAIN:  # it could not be put right
            severity = severity_of(difference)
        return severity is Severity.DECISIVE and self.is_exact and self._fresh

    def _put_right(self, difference: Difference) -> bool:
        there, here = difference.there, difference.here
        if there is None or here is None or self._read_blob is None:
            return False
        if there.value is not None and there.value.codec == "state":
            return content_of(here.value, skipped=self._models).exact == there.exact
        try:
            value = notebook_value(there, self._read_blob, self._placed)
        except Exception as error:  # noqa: BLE001 (of a blob that another Python has pickled, say)
            logger.info("%s cannot be taken from the notebook: %s", _title_of(difference), error)
            return False
        return put_right(here, value, is_weights=difference.fact.role == "weights")

    def _refuse(self, found: Sequence[Difference]) -> None:
        lines = [self._line(difference) for difference in found[:_MOST_LINES]]
        if len(found) > _MOST_LINES:
            lines.append(f"  and {len(found) - _MOST_LINES} more.")
        text = "\n".join([_HEADLINE, *lines])
        if self._mode == "warn":
            logger.warning("%s", text)
            self._add_rows([self._row(difference, _DIFFERS, _sides(difference)) for difference in found])
            return
        if self._widened:
            text = f"{text}\n{_WIDER}"
        raise InputDiffersError(text, advice(found, self._program, self._title))

    def _row(self, difference: Difference, how: str, note: str) -> CaptureRow:
        made = self._made_in(difference.fact.name)
        return CaptureRow(what=_title_of(difference), how=how, size=0, cell=made, status="already there", note=note)

    def _line(self, difference: Difference) -> str:
        made = self._made_in(difference.fact.name)
        return f"  {_title_of(difference)}: {_sides(difference)}" + (f"; made in {made}." if made else ".")

    def _made_in(self, name: str) -> str:
        """Return which cells of the program bind a name."""
        cells = [place for place, cell in enumerate(self._program.cells) if name and name in bound_in(cell.source)]
        return ", ".join(dict.fromkeys(self._title(place) for place in cells))


class ComparedElsewhere:
    """Waits before the training until another trial has compared its inputs: then it is known which program is right.

    Parameters
    ----------
    pending : callable
        Says whether it has yet to; raises MasterError without an answer.
    stop_requested : callable
        Whether the trial is to end.
    """

    def __init__(self, pending: Callable[[], bool], stop_requested: Callable[[], bool]) -> None:
        self._pending = pending
        self._stop_requested = stop_requested

    def wait(self) -> None:
        """Wait; a master that has not answered for a minute is waited for no longer."""
        silent_since: float | None = None
        while not self._stop_requested():
            try:
                if not self._pending():
                    return
                silent_since = None
            except MasterError:
                silent_since = silent_since or time.monotonic()
                if time.monotonic() - silent_since > _SILENT_SECONDS:
                    logger.warning("The master does not say whether the program is the right one; the training begins.")
                    return
            time.sleep(_POLL_SECONDS)


def waits_for_proof(job: TrialJob) -> bool:
    """Whether another trial of the experiment compares what the training is given, and may change or end them all.

    That trial has the notebook's seed; one that continues has waited when it began.
    """
    bundle = job.bundle
    first = job.resume is None and job.warm_start is None and (job.gang is None or job.gang.rank == 0)
    compared = bundle.proof is not None and job.config.get("proof", "error") == "error"
    return first and compared and not has_notebooks_seed(job) and job.master_url is not None


def input_check(
    job: TrialJob,
    title: Callable[[int], str],
    read_blob: Callable[[str], bytes],
    add_rows: Callable[[list[CaptureRow]], object],
    before: Callable[[], object] = lambda: None,
    placed: Callable[[Any], Any] = lambda value: value,
) -> InputCheck | None:
    """Return what compares the inputs of this attempt; None where nothing is known of them, or nobody wants it.

    Each process of a trial puts its own inputs right.
    """
    mode, proof = job.config.get("proof", "error"), job.bundle.proof
    if mode == "off" or proof is None:
        return None
    same = all(job.hparams.get(name) == value for name, value in proof.hparams.items())
    return InputCheck(
        proof,
        job.bundle.program,
        mode,
        title,
        read_blob=read_blob,
        exact=same and has_notebooks_seed(job),
        fresh=job.resume is None and job.warm_start is None,
        add_rows=add_rows,
        before=before,
        placed=placed,
        widened=job.bundle.widened,
    )


def _parts_of(payload: Any) -> tuple[dict[str, Input], frozenset[int]]:
    inputs = as_inputs(payload.inputs())
    apart = list(getattr(payload, "compared_parts", getattr(payload, "models", ())))
    by_themselves = [*apart, *(given.value for given in inputs.values())]
    return inputs | read_by(payload.code(), without=by_themselves), frozenset(identities_of(apart))


def _sides(difference: Difference) -> str:
    there = difference.there.text if difference.there is not None else "nothing"
    here = difference.here.content.text if difference.here is not None else "nothing"
    if there == SECRET:
        return f"{SECRET} has another value on the worker"
    if there == here:
        return f"{here} on the worker and in the notebook, with other content"
    return f"{here} on the worker, {there} in the notebook"


def _title_of(difference: Difference) -> str:
    part, name, path = difference.fact.part, difference.fact.name, difference.path
    words = [path] if path.startswith((".", "[")) or not path else [f": {path}"]
    named = name and not part.startswith((name, "the function"))
    return f"{name}{words[0]} ({part})" if named else f"{part}{words[0]}"
