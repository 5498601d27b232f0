"""Attributes that Determined's SDK has and that mean nothing here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from det_native.absent import absent_attribute
from det_native.errors import shown_shortly

#: Where they are looked up.
SDK = "determined.experimental.client"


class AbsentNames:
    """Base of handles: the error for a name of Determined's that is absent says why, and what to use."""

    #: Name of the class in that SDK; empty for what its functions are looked up by.
    _sdk_class: ClassVar[str] = ""

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Raise the error for an attribute that is not there."""
            owner = f"{SDK}.{self._sdk_class}" if self._sdk_class else SDK
            if (error := absent_attribute(owner, name)) is not None:
                raise shown_shortly(error)
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
