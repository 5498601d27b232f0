"""Bodies of the routes under ``/space``: what takes the disk of a master, and what may go."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from det_native.schema.bodies import Answer, Sent
from det_native.schema.sizes import shown_size

#: What ``det clean`` deletes on request.
Cleanable = Literal["blobs", "caches", "runs", "uploads"]
#: From this share of the budget on, people are warned.
NEARLY_FULL = 0.9


class SpaceUse(Answer):
    """What one kind of things takes.

    Attributes
    ----------
    bytes, count : int
        Bytes of the files, and how many things there are.
    part_of : str or None
        The kind that has these bytes already: output lies in the database, for instance.
    place : str
        Where it lies in the home.
    """

    kind: str
    bytes: int
    count: int
    part_of: str | None = None
    place: str = ""


class Space(Answer):
    """What takes the disk of a master.

    Attributes
    ----------
    uses : list of SpaceUse
        By kind; those without `part_of` make up `total`.
    total : int
        Bytes of all files in the home.
    free : int or None
        What the disk has left.
    budget : int or None
        What the home may take, where that was said.
    measured : str
        When it was measured.
    waiting_deletions : int
        How many deleted experiments have files that could not be removed yet.
    """

    home: str
    uses: list[SpaceUse]
    total: int
    free: int | None = None
    budget: int | None = None
    measured: str
    waiting_deletions: int = 0

    @property
    def nearly_full(self) -> bool:
        """Whether the budget, if there is one, is used up but for a tenth."""
        return self.budget is not None and self.total >= NEARLY_FULL * self.budget

    @property
    def line(self) -> str:
        """What ``det status`` says of it."""
        text = shown_size(self.total)
        if self.budget is not None:
            text += f" of a budget of {shown_size(self.budget)}"
        return text if self.free is None else f"{text}; {shown_size(self.free)} free"

    @property
    def waiting_line(self) -> str:
        """How many deletions wait, and for what; empty if none does."""
        if not self.waiting_deletions:
            return ""
        several = self.waiting_deletions > 1
        return (
            f"{self.waiting_deletions} deleted experiment{'s have' if several else ' has'} files that cannot be "
            "removed yet; the master tries again every few minutes, and its log says why"
        )

    @property
    def warning(self) -> str:
        """A sentence if the budget is nearly used up or exceeded, else empty."""
        if not self.nearly_full or self.budget is None:
            return ""
        state = "is used up" if self.total >= self.budget else f"is used up to {self.total / self.budget:.0%}"
        return (
            f"The disk budget of the master {state} ({shown_size(self.total)} of {shown_size(self.budget)} in "
            f"{self.home}): `det space` says by what, `det clean --dry-run --all` what can go, and `det up "
            "--disk-budget SIZE` allows more."
        )


class SpaceSettings(Sent):
    """Body of ``PUT /space``: what is kept, and for how long. A field that is left out stays as it is.

    Attributes
    ----------
    budget : int or None
        Bytes that the home may take; None for as many as the disk has.
    log_retention_days : int or None
        For so many days after its end the output of an experiment is kept whose configuration does not say; None or
        -1 for ever.
    cache_retention_days : int or None
        So long caches stay that nobody reads; None for ever.
    """

    budget: int | None = Field(default=None, gt=0)
    log_retention_days: int | None = Field(default=None, ge=-1, le=32_767)
    cache_retention_days: int | None = Field(default=None, ge=0, le=32_767)


class CleanWanted(Sent):
    """Body of ``POST /space/clean``.

    Attributes
    ----------
    older_than_days : float
        Only what has not been used for so long; blobs count as new for some hours in any case.
    dry_run : bool
        Only say what would go.
    """

    kinds: list[Cleanable] = Field(min_length=1)
    older_than_days: float = Field(default=0.0, ge=0, le=32_767)
    dry_run: bool = False


class CleanedKind(Answer):
    """What went of a kind, or would go; `kept` says why more did not."""

    kind: str
    bytes: int
    count: int
    kept: str = ""


class CleanDone(Answer):
    """Answer of ``POST /space/clean``."""

    kinds: list[CleanedKind]
    dry_run: bool

    @property
    def bytes(self) -> int:
        """Bytes of all kinds."""
        return sum(kind.bytes for kind in self.kinds)
