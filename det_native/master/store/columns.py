"""What all tables of the store share: their metadata, and types of columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import BigInteger, Float, Integer, MetaData, String, TypeDecorator
from sqlalchemy.exc import DataError

from det_native.schema.states import ShownState

if TYPE_CHECKING:
    from sqlalchemy import Dialect

metadata = MetaData(
    naming_convention={
        "pk": "pk_%(table_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    }
)

#: What a database raises for a number or text that it cannot store.
UNSTORABLE = (OverflowError, UnicodeError, DataError)

# SQLite hands out increasing 64-bit ids only to a column that is declared INTEGER.
Id = BigInteger().with_variant(Integer, "sqlite")
Double = Float(53)


class StateName(TypeDecorator[ShownState]):
    """A state, stored by its name: its value is what is shown, and words that are shown may change."""

    impl = String
    cache_ok = True

    def __init__(self, states: type[ShownState], length: int) -> None:
        super().__init__(length)
        self.states = states

    def process_bind_param(self, value: ShownState | None, dialect: Dialect) -> str | None:
        """Return the name of a state."""
        return None if value is None else self.states(value).name

    def process_result_value(self, value: Any | None, dialect: Dialect) -> ShownState | None:
        """Return the state of a name."""
        return None if value is None else self.states[value]
