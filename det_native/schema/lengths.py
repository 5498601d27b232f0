"""Lengths of training: so many batches, records or epochs."""

from __future__ import annotations

from enum import StrEnum

from pydantic import BaseModel, ConfigDict, model_serializer, model_validator


class Unit(StrEnum):
    """Unit of a length."""

    BATCHES = "batches"
    RECORDS = "records"
    EPOCHS = "epochs"


class Length(BaseModel):
    """A length of training, written ``{"batches": 100}``, ``{"records": 3200}`` or ``{"epochs": 5}``.

    A bare number means batches (as later Determined versions allowed).
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    unit: Unit
    units: int

    @model_validator(mode="before")
    @classmethod
    def _from_written_form(cls, value: object) -> object:
        if isinstance(value, Length):
            return {"unit": value.unit, "units": value.units}
        if isinstance(value, int) and not isinstance(value, bool):
            value = {"batches": value}
        if isinstance(value, dict) and set(value) == {"unit", "units"}:
            return value
        if not isinstance(value, dict) or len(value) != 1 or next(iter(value)) not in list(Unit):
            raise ValueError(
                "a length is a number of batches, or exactly one of "
                '{"batches": n}, {"records": n}, {"epochs": n} with a whole number n'
            )
        unit, units = next(iter(value.items()))
        if isinstance(units, bool) or not isinstance(units, int) or units < 0:
            raise ValueError(f"{unit} must be a whole number of at least 0, not {units!r}")
        return {"unit": unit, "units": units}

    @model_serializer
    def _to_written_form(self) -> dict[str, int]:
        return {self.unit.value: self.units}

    def to_batches(self, *, global_batch_size: int, records_per_epoch: int, whole_epochs: bool = False) -> int:
        """Convert to batches, truncating (Determined's rule).

        Parameters
        ----------
        global_batch_size : int
            Records per batch over all slots.
        records_per_epoch : int
            Records in one epoch; needed for lengths in epochs only.
        whole_epochs : bool
            Each epoch ends with a smaller batch where it does not come out even, as Keras's ``fit()`` has it.

        Raises
        ------
        ValueError
            For a length in epochs while `records_per_epoch` is 0.
        """
        if self.unit is Unit.BATCHES:
            return self.units
        if self.unit is Unit.RECORDS:
            return self.units // global_batch_size
        if records_per_epoch <= 0:
            raise ValueError("a length in epochs needs records_per_epoch")
        if whole_epochs:
            return self.units * -(-records_per_epoch // global_batch_size)
        return self.units * records_per_epoch // global_batch_size


#: The length of a trial whose own code says how long it trains, while it has not said so.
UNTOLD = Length(unit=Unit.BATCHES, units=2**52)
