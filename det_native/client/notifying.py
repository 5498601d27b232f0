"""Who is told of what happens to all experiments of a user."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from itertools import count
from typing import TYPE_CHECKING, Any, NamedTuple

from pydantic import ValidationError

from det_native.errors import ArgumentError, NotFoundError
from det_native.schema.notify import Notify
from det_native.schema.notify_rest import NotifySettings, NotifyTest

if TYPE_CHECKING:
    from det_native.client.session import Session


class SetEntry(NamedTuple):
    """An entry that was set, whether it has taken the place of another one, and what the master warns of."""

    entry: Notify
    replaced: bool
    warnings: list[str]


def entries(session: Session) -> list[Notify]:
    """Return who is told; webhooks and secrets are references."""
    from det_native.schema import routes

    return session.call(routes.GET_NOTIFY).entries


def set_entry(session: Session, fields: dict[str, Any]) -> SetEntry:
    """Add an entry, or put it in the place of the one of the same name; without a name it gets one, and is added.

    Raises
    ------
    ArgumentError
        If it is not valid; the sentence says what is wrong.
    """
    try:
        entry = Notify.model_validate({name: value for name, value in fields.items() if value is not None})
    except ValidationError as error:
        raise ArgumentError(_sentence(error)) from error
    known = entries(session)
    names = [other.name for other in known]
    if not entry.name:
        entry = entry.model_copy(update={"name": _name_of(entry, names)})
    replaced = entry.name in names
    if replaced:  # where it stands: messages on their way name it by its place
        known[names.index(entry.name)] = entry
    else:
        known.append(entry)
    return SetEntry(entry, replaced, put(session, known))


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


def put(session: Session, kept: Sequence[Notify]) -> list[str]:
    """Keep these entries and no others; return what the master warns of."""
    from det_native.schema import routes

    return session.call(routes.PUT_NOTIFY, NotifySettings.model_construct(entries=list(kept))).warnings


def try_out(session: Session) -> list[NotifyTest]:
    """Have a test message sent to everybody."""
    from det_native.schema import routes

    return session.call(routes.TRY_NOTIFY, timeout=120.0).tests


def notify(
    *,
    on: Sequence[str] | str | None = None,
    webhook: str | None = None,
    format: str = "json",
    secret: str | None = None,
    email: str | None = None,
    plateau: dict[str, Any] | None = None,
    name: str = "",
    master_url: str | None = None,
) -> None:
    """Be told of what happens to all experiments from now on, by a webhook or by e-mail.

    For one experiment only, write the section ``notify`` in its configuration. An entry of the same `name` is replaced,
    and that is printed.

    Parameters
    ----------
    on : sequence of str, or str, optional
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
        What the entry is called; by default ``"webhook"`` or ``"email"``, with a number where that is taken.
    master_url : str, optional
        The master; ``DET_MASTER``, else the one of this machine.

    Raises
    ------
    ArgumentError
        If an event is unknown, or an address is none.
    """
    from det_native.client.connect import connect
    from det_native.schema.loading import ConfigurationWarning

    fields = {
        "name": name,
        "on": [on] if isinstance(on, str) else list(on) if on is not None else None,
        "webhook": webhook,
        "format": format,
        "secret": secret,
        "email": email,
        "plateau": plateau,
    }
    done = set_entry(connect(master_url), fields)
    if done.replaced:
        print(f"The notification {done.entry.name!r} is replaced.")
    for warning in done.warnings:
        warnings.warn(warning, ConfigurationWarning, stacklevel=2)


def _name_of(entry: Notify, names: Sequence[str]) -> str:
    """Return a name for an entry, by what it is: one that no other has."""
    kind = "webhook" if entry.webhook is not None else "email"
    candidates = (kind if number == 1 else f"{kind} {number}" for number in count(1))
    return next(name for name in candidates if name not in names)


def _sentence(error: ValidationError) -> str:
    """Return what is wrong with an entry, without the values: a webhook's address may be a secret."""
    said = []
    for problem in error.errors(include_input=False, include_url=False):
        place = ".".join(str(part) for part in problem["loc"] if part != "function-after")
        text = problem["msg"].removeprefix("Value error, ")
        text = text.replace("Input should be", "must be")
        said.append(f"notify{f'.{place}' if place else ''} {text}")
    return "; ".join(dict.fromkeys(said)) + "."
