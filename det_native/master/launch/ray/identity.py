"""What a home keeps of its Ray cluster: the name by which its actors are found again, and the names of the machines."""

from __future__ import annotations

import secrets

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from det_native.schema.home import Home
from det_native.schema.private_files import write_private

_MOST_NAMES = 1000
_MOST_ADDRESSES = 100


class Identity(BaseModel):
    """Content of ``ray.json``.

    Attributes
    ----------
    id : str
        Tells this home from others whose masters use the same cluster.
    names : dict of str to str
        Names of machines by Ray's ids, for slots to be called the same after a restart.
    addresses : list of str
        At which a cluster has answered this home; there are none of a home that an earlier version has made.
    """

    model_config = ConfigDict(extra="ignore")

    id: str = Field(default_factory=lambda: secrets.token_hex(6), pattern=r"^[0-9a-f]+$")
    names: dict[str, str] = Field(default_factory=dict)
    addresses: list[str] = Field(default_factory=list)

    @property
    def namespace(self) -> str:
        """Ray's namespace of the actors."""
        return f"det_native-{self.id}"

    def remember(self, home: Home, names: dict[str, str], address: str) -> None:
        """Add names of machines, and the address at which their cluster has answered, and keep them."""
        if address not in self.addresses or any(self.names.get(node) != name for node, name in names.items()):
            kept = {node: name for node, name in self.names.items() if node not in names}
            self.names = dict([*kept.items(), *names.items()][-_MOST_NAMES:])
            self.addresses = [*(known for known in self.addresses if known != address), address][-_MOST_ADDRESSES:]
            save(home, self)


def identify(home: Home) -> Identity:
    """Return what is known of a home, which gets a name now if it has none."""
    try:
        return Identity.model_validate_json(home.ray.read_bytes())
    except (OSError, ValidationError):
        made = Identity()
        save(home, made)
        return made


def save(home: Home, identity: Identity) -> None:
    """Keep it."""
    write_private(home.ray, identity.model_dump_json())
