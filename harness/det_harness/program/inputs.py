"""Whether the recorded call is given what it was given in the notebook."""

from __future__ import annotations

import ast
import logging
import time
from collections.abc import Callable
from typing import Any, Literal

from det_harness.program.input_advice import advice
from det_native.errors import InputDiffersError, MasterError
from det_native.proof.call import Difference, differences, in_words
from det_native.proof.lookups import read_by
from det_native.schema.job import TrialJob
from det_native.schema.manifests import Program
from det_native.schema.proof import CallProof

logger = logging.getLogger("det_harness")

_POLL_SECONDS = 0.1
_SILENT_SECONDS = 60.0

_WIDER = "It is so with all cells that can run again, too."


def has_notebooks_seed(job: TrialJob) -> bool:
    """Whether this trial draws from the seed that the notebook had."""
    proof = job.bundle.proof
    return proof is not None and proof.seed == job.trial_seed


class InputCheck:
    """Compares the inputs of the recorded call, once, before anything is done with them.

    Parameters
    ----------
    proof : CallProof
    program : Program
    mode : {"error", "warn"}
        What a difference is.
    title : callable
        Gives the name of a cell, by its index.
    widened : str
        What differed with the program that this one has replaced; empty if it is the first.
    """

    def __init__(
        self,
        proof: CallProof,
        program: Program,
        mode: Literal["error", "warn"],
        title: Callable[[int], str],
        widened: str = "",
    ) -> None:
        self._proof = proof
        self._program = program
        self._mode = mode
        self._title = title
        self._widened = widened

    def compare(self, payload: Any) -> None:
        """Compare.

        Raises
        ------
        InputDiffersError
            Naming each input that is another one, with both sides and the cells that make it.
        """
        inputs = getattr(payload, "inputs", None)
        if inputs is None:
            return
        if self._proof.untold:
            logger.warning("%s", self._proof.untold)
        try:
            found = differences(self._proof, inputs() | read_by(payload.code()))
        except Exception as error:  # noqa: BLE001 (comparing may fail, and keeps nothing from being trained)
            logger.warning("What reaches the training is not compared with the notebook's: %s", in_words(error))
            return
        for difference in found:
            if difference.untold:
                logger.warning("%s", difference.untold)
            elif difference.rounding:
                logger.info("The same as in the notebook but for last digits: %s.", _title_of(difference))
        other = [difference for difference in found if not (difference.rounding or difference.untold)]
        if not other:
            return
        lines = list(map(self._line, other))
        text = "\n".join(["The training call was given something else here than in the notebook:", *lines])
        if self._mode == "warn":
            logger.warning("%s", text)
            return
        if self._widened:
            text = f"{text}\n{_WIDER}"
        raise InputDiffersError(text, advice(other, self._program, self._title))

    def failed(self, error: Exception) -> InputDiffersError | None:
        """Return what an error means that kept the program from the recorded call; None where it means itself.

        The wider program is run only because the first one gave other inputs: that is what the user has to know.
        """
        if not self._widened:
            return None
        what = f"Running all cells that can run again was tried, too; it failed: {type(error).__name__}: {error}"
        return InputDiffersError(f"{self._widened}\n{what}", advice((), self._program, self._title))

    def _line(self, difference: Difference) -> str:
        assert difference.found is not None
        here, there = difference.found.text, difference.wanted.text
        values = f"{here} here, {there} in the notebook" if here != there else f"{here}, but with other content"
        made = self._made_in(difference.wanted.name)
        return f"  {_title_of(difference)}: {values}." + (f" Made in {made}." if made else "")

    def _made_in(self, name: str) -> str:
        """Return which cells of the program bind a name."""
        cells = [place for place, cell in enumerate(self._program.cells) if name and name in _bound_in(cell.source)]
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

    def compare(self, payload: Any) -> None:
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

    def failed(self, error: Exception) -> None:
        """Nothing is known of what an error means."""


def waits_for_proof(job: TrialJob) -> bool:
    """Whether another trial of the experiment compares what the training is given, and may change or end them all.

    That trial has the notebook's seed; one that continues has waited when it began.
    """
    bundle = job.bundle
    first = job.resume is None and job.warm_start is None and (job.gang is None or job.gang.rank == 0)
    compared = bundle.proof is not None and job.config.get("proof", "error") == "error"
    return first and compared and not has_notebooks_seed(job) and job.master_url is not None


def input_check(job: TrialJob, title: Callable[[int], str]) -> InputCheck | None:
    """Return what compares the inputs of this attempt; None where they are not to be the notebook's.

    Other trials have other hyperparameters or seeds, a resumed one was compared when it began, and one rank is enough.
    """
    mode, proof = job.config.get("proof", "error"), job.bundle.proof
    if mode == "off" or proof is None or job.resume is not None or job.warm_start is not None:
        return None
    rank = job.gang.rank if job.gang is not None else 0
    same = all(job.hparams.get(name) == value for name, value in proof.hparams.items())
    if rank or not same or not has_notebooks_seed(job):
        return None
    return InputCheck(proof, job.bundle.program, mode, title, job.bundle.widened)


def _title_of(difference: Difference) -> str:
    part, name = difference.wanted.part, difference.wanted.name
    return f"{name} ({part})" if name and not part.startswith(name) and not part.startswith("the function") else part


def _bound_in(source: str) -> set[str]:
    """Return the names that a cell binds at any depth of its own code."""
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return set()
    bound = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    return bound | {
        node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
    }
