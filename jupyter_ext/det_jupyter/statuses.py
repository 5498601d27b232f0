"""How the master looks from Jupyter, in the words that the panel shows."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict

from det_native._version import PROTOCOL, __version__
from det_native.client.addresses import is_loopback
from det_native.schema.rest import Health

State = Literal["running", "none", "starting", "unauthorised", "mismatch", "unreachable"]

_OWN_TOKEN = (
    "The file `token` in the master's home is not the one with which it was started. Restart it: `det down` and "
    "`det up`. Running trials go on."
)
_OWN_ADDRESS = (
    "The file `runtime.json` in the home folder of det_native names this address. Have it written again: `det down` "
    "and `det up`."
)


class MasterName(BaseModel):
    """Which master it is."""

    model_config = ConfigDict(frozen=True)

    url: str
    version: str
    protocol: int


class Status(BaseModel):
    """Answer of ``status``: what is the matter, what to do about it, and whether starting a master is offered."""

    model_config = ConfigDict(frozen=True)

    state: State
    message: str
    remedy: str = ""
    version: str = __version__
    protocol: int = PROTOCOL
    master: MasterName | None = None
    can_start: bool = False


class UnavailableError(Exception):
    """The master cannot be asked; `status` says why."""

    def __init__(self, status: Status) -> None:
        super().__init__(status.message)
        self.status = status


def running(url: str, health: Health) -> Status:
    """Return that the master answers; a version other than ours is mentioned."""
    message = f"The master runs at {url}."
    remedy = ""
    if health.version != __version__:
        message += f" It is version {health.version}; this Jupyter server has {__version__}."
        remedy = "They work together. Restart the older of the two when it suits you."
    return Status(state="running", message=message, remedy=remedy, master=_named(url, health))


def none(home: str) -> Status:
    """Return that no master runs in the home folder."""
    return Status(
        state="none",
        message=f"No master runs in {home}.",
        remedy="Start one here. It keeps running when JupyterLab is closed; `det down` stops it.",
        can_start=True,
    )


def starting() -> Status:
    """Return that it has been started and is not ready yet."""
    return Status(state="starting", message="The master is starting.", remedy="It is ready in a few seconds.")


def none_there(reason: str) -> Status:
    """Return that no master runs on the machine behind SSH."""
    return Status(
        state="none",
        message=reason,
        remedy="Start one there. It keeps running when JupyterLab is closed.",
        can_start=True,
    )


def connecting(named: str) -> Status:
    """Return that the connection to the machine behind SSH is being made."""
    return Status(state="starting", message=f"Connecting to {named}.", remedy="It is there in a few seconds.")


def out_of_reach(reason: str, state: State) -> Status:
    """Return that the machine behind SSH cannot be used; `reason` says what to do."""
    return Status(state=state, message=reason, remedy="What trains there goes on. The view comes back by itself.")


def start_failed(reason: str) -> Status:
    """Return that the last start failed."""
    return Status(
        state="none",
        message=reason,
        remedy="Fix what its log names, then start it again.",
        can_start=True,
    )


def without_token(reason: str, *, named: bool) -> Status:
    """Return that there is no token to send; `named` is whether the environment names the master."""
    remedy = "The variable belongs into the environment from which Jupyter is started; restart Jupyter then."
    return Status(state="unauthorised", message=reason, remedy=remedy if named else "")


def token_refused(url: str, *, named: bool) -> Status:
    """Return that the master does not accept our token; `named` is whether the environment names the master."""
    if not named:
        remedy = _OWN_TOKEN
    elif is_loopback(url):
        remedy = (
            "Start Jupyter with DET_TOKEN set to the content of the file `token` in the master's home, or without "
            "DET_MASTER for the master of its own home."
        )
    else:
        remedy = "Ask for a new token, set DET_TOKEN to it where Jupyter is started, and restart Jupyter."
    return Status(state="unauthorised", message=f"The master at {url} refuses the token.", remedy=remedy)


def mismatch(url: str, health: Health) -> Status:
    """Return that master and extension speak different protocols."""
    if health.protocol > PROTOCOL:
        remedy = f"Upgrade det_native here (pip install det-native=={health.version}) and restart Jupyter."
    elif is_loopback(url):
        remedy = "Restart the master: `det down` and `det up`. Running trials go on."
    else:
        remedy = "Have the master upgraded."
    return Status(
        state="mismatch",
        message=f"The master at {url} is version {health.version} (protocol {health.protocol}); this Jupyter server "
        f"has {__version__} (protocol {PROTOCOL}).",
        remedy=remedy,
        master=_named(url, health),
    )


def silent(url: str, reason: str, *, named: bool) -> Status:
    """Return that nothing answers at the address; `named` is whether the environment names it."""
    remedy = (
        "Check DET_MASTER, with which Jupyter was started, and the network. The view comes back by itself."
        if named
        else "If it stays so, `det logs` shows what the master does, and `det down` ends it."
    )
    return Status(state="unreachable", message=f"The master at {url} does not answer ({reason}).", remedy=remedy)


def foreign(url: str, *, named: bool) -> Status:
    """Return that something else than a master answers; `named` is whether the environment names the address."""
    return Status(
        state="unreachable",
        message=f"What answers at {url} is no det_native master.",
        remedy="Check DET_MASTER, with which Jupyter was started." if named else _OWN_ADDRESS,
    )


def misnamed(reason: str) -> Status:
    """Return that the address in the environment is none."""
    return Status(
        state="unreachable",
        message=reason,
        remedy="Set DET_MASTER to the master's address where Jupyter is started, and restart Jupyter.",
    )


def _named(url: str, health: Health) -> MasterName:
    return MasterName(url=url, version=health.version, protocol=health.protocol)
