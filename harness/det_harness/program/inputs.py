"""Whether the recorded call is given what it was given in the notebook; what can be put right is."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any, Literal

from det_harness.program.input_advice import advice, bound_in
from det_harness.program.input_comparison import Comparison
from det_harness.program.input_difference import Difference
from det_harness.program.notebook_texts import put_notebooks_texts
from det_native.errors import InputDiffersError
from det_native.heap.pickling import short
from det_native.heap.slots import Slot
from det_native.heap.values import unpack_whole
from det_native.schema.job import TrialJob
from det_native.schema.manifests import Program
from det_native.schema.proof import DIFFERS, CallProof
from det_native.schema.reports import CaptureRow
from det_native.schema.sampling import trial_seeds

logger = logging.getLogger("det_harness")

_MOST_LINES = 12

_HEADLINE = "Inputs of the training call differ from the notebook:"
_PUT_RIGHT = "notebook's value"


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
    place : callable
        Gives the path that is used here instead of one in a value that travelled.
    folder : Path, optional
        That of the user's files; the working directory by default.
    sent : collection of str
        Files that have come from the notebook, relative to that: they keep their names.

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
        place: Callable[[str], str] = str,
        folder: Path | None = None,
        sent: Collection[str] = (),
    ) -> None:
        self._folder, self._sent = folder, sent
        self._proof = proof
        self._program = program
        self._mode = mode
        self._title = title
        self._read_blob = read_blob
        self.is_exact = exact
        self._fresh = fresh
        self._add_rows = add_rows
        self._place = place

    def put_texts(self) -> None:
        """Put the notebook's texts, paths and moments in place of the worker's, before files are looked at."""
        noted = self._proof.texts
        if not self.is_exact or noted is None or self._read_blob is None:
            return
        try:
            changed = put_notebooks_texts(unpack_whole(self._read_blob(noted.sha256)), self._sent)
        except Exception as error:  # noqa: BLE001 (objects of the user's may raise anything; the training begins)
            logger.warning("Names that cells made are the worker's own: %s", short(error))
            return
        rows = [*{slot.name: self._text_row(slot, value) for slot, value in reversed(changed)}.values()][-_MOST_LINES:]
        for row in rows:
            logger.info("%s: %s.", row.what, row.note)
        if rows:
            self._add_rows(rows)

    def _text_row(self, slot: Slot, value: Any) -> CaptureRow:
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
        if getattr(payload, "inputs", None) is None:
            return
        if self._proof.table is None or self._read_blob is None:
            for sentence in self._proof.sentences:
                logger.warning("%s", sentence)
            return
        try:
            job = Comparison(self._proof, payload, self._read_blob, self._place, self._folder)
            job.choose(is_exact=self.is_exact, is_fresh=self._fresh)
            right, wrong = job.put_right()
        except Exception as error:  # noqa: BLE001 (comparing may fail, and keeps nothing from being trained)
            logger.warning("What reaches the training is not compared with the notebook's: %s.", short(error))
            return
        rows = [self._put_right_row(difference, job) for difference in right]
        decisive = [difference for difference in wrong if difference.is_decisive and self.is_exact and self._fresh]
        if self.is_exact:
            rows += [self._row(each, DIFFERS, each.text) for each in wrong if each not in decisive]
        for row in rows:
            logger.log(logging.INFO if row.how == _PUT_RIGHT else logging.WARNING, "%s: %s.", row.what, row.note)
        if rows:
            self._add_rows(rows)
        if decisive:
            self._refuse(decisive)

    def _put_right_row(self, difference: Difference, job: Comparison) -> CaptureRow:
        note = f"{difference.text}; the notebook's is used"
        if difference.title not in job.early:
            note += ", in trials with the notebook's hyperparameters and seed"
        return self._row(difference, _PUT_RIGHT, note)

    def _refuse(self, found: Sequence[Difference]) -> None:
        lines = [self._line(difference) for difference in found[:_MOST_LINES]]
        if len(found) > _MOST_LINES:
            lines.append(f"  and {len(found) - _MOST_LINES} more.")
        text = "\n".join([_HEADLINE, *lines])
        if self._mode == "warn":
            logger.warning("%s", text)
            self._add_rows([self._row(difference, DIFFERS, difference.text) for difference in found])
            return
        raise InputDiffersError(text, advice(found, self._program))

    def _row(self, difference: Difference, how: str, note: str) -> CaptureRow:
        made = self._made_in(difference.name)
        return CaptureRow(what=difference.heading, how=how, size=0, cell=made, status="already there", note=note)

    def _line(self, difference: Difference) -> str:
        made = self._made_in(difference.name)
        return f"  {difference.heading}: {difference.text}" + (f"; made in {made}." if made else ".")

    def _made_in(self, name: str) -> str:
        """Return which cells of the program bind a name."""
        cells = [place for place, cell in enumerate(self._program.cells) if name and name in bound_in(cell.source)]
        return ", ".join(dict.fromkeys(self._title(place) for place in cells))


def input_check(
    job: TrialJob,
    title: Callable[[int], str],
    read_blob: Callable[[str], bytes],
    add_rows: Callable[[list[CaptureRow]], object],
    place: Callable[[str], str] = str,
    folder: Path | None = None,
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
        place=place,
        folder=folder,
        sent=[entry.path for entry in (*job.bundle.files, *job.bundle.links)],
    )
