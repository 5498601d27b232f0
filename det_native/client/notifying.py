"""Who is told of what happens to all experiments of a user."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from det_native.errors import ArgumentError, NotFoundError
from det_native.schema.notify import Notify
from det_native.schema.notify_rest import NotifySettings, NotifyTest, NotifyTests

if TYPE_CHECKING:
    from det_native.client.session import Session

_PATH = "/settings/notify"


def entries(session: Session) -> list[Notify]:
    """Return who is told; webhooks and secrets are references."""
    return NotifySettings.model_validate(session.get(_PATH)).entries


def set_entry(session: Session, fields: dict[str, Any]) -> Notify:
    """Add an entry, or put it in the place of the one of the same name.

    Raises
    ------
    ArgumentError
        If it is not valid; the sentence says what is wrong.
    """
    try:
        entry = Notify.model_validate({name: value for name, value in fields.items() if value is not None})
    except ValidationError as error:
        raise ArgumentError(_sentence(error)) from error
    kept = [known for known in entries(session) if known.name != entry.name]
    put(session, [*kept, entry])
    return entry


def remove_entry(session: Session, name: str) -> None:
    """Remove an entry.

    Raises
    ------
    NotFoundError
        If there is none of that name.
    """
    known = entries(session)
    kept = [entry for entry in known if entry.name != name]
    if len(kept) == len(known):
        names = ", ".join(repr(entry.name) for entry in known) or "none"
        raise NotFoundError(f"There is no notification {name!r}; there are: {names}.")
    put(session, kept)


def put(session: Session, kept: Sequence[Notify]) -> None:
    """Keep these entries and no others."""
    session.put(_PATH, {"entries": [entry.model_dump(mode="json") for entry in kept]})


def try_out(session: Session) -> list[NotifyTest]:
    """Have a test message sent to everybody."""
    return NotifyTests.model_validate(session.post(f"{_PATH}/test", timeout=120.0)).tests


def notify(
    *,
    on: Sequence[str] | None = None,
    webhook: str | None = None,
    format: str = "json",
    secret: str | None = None,
    email: str | None = None,
    plateau: dict[str, Any] | None = None,
    name: str = "",
    master_url: str | None = None,
) -> None:
    """Be told of what happens to all experiments from now on, by a webhook or by e-mail.

    For one experiment only, write the section ``notify`` in its configuration. An entry of the same `name` is replaced.

    Parameters
    ----------
    on : sequence of str, optional
        ``"end"``, ``"failure"``, ``"nan"``, ``"plateau"``, ``"best"``; ends and failures by default.
    webhook : str, optional
        Where JSON is posted.
    format : str
        ``"json"``, or ``"slack"`` for what Slack takes.
    secret : str, optional
        Signs what is posted.
    email : str, optional
        Who gets an e-mail, by the SMTP server of the master.
    plateau : dict, optional
        When a plateau is one: ``{"validations": 5}``, for instance.
    name : str
        What the entry is called.
    master_url : str, optional
        The master; ``DET_MASTER``, else the one of this machine.

    Raises
    ------
    ArgumentError
        If an event is unknown, or an address is none.
    """
    from det_native.client.connect import connect

    fields = {
        "name": name,
        "on": list(on) if on is not None else None,
        "webhook": webhook,
        "format": format,
        "secret": secret,
        "email": email,
        "plateau": plateau,
    }
    set_entry(connect(master_url), fields)


def _sentence(error: ValidationError) -> str:
    """Return what is wrong with an entry, without the values: a webhook's address may be a secret."""
    said = []
    for problem in error.errors(include_input=False, include_url=False):
        place = ".".join(str(part) for part in problem["loc"] if part != "function-after")
        text = problem["msg"].removeprefix("Value error, ")
        text = text.replace("Input should be", "must be")
        said.append(f"notify{f'.{place}' if place else ''} {text}")
    return "; ".join(dict.fromkeys(said)) + "."
