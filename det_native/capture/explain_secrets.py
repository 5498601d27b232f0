"""Sentences and rows of the capture report about secrets in code."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from det_native.capture.secrets import environment_reads, find_secrets
from det_native.errors import Problem
from det_native.schema.reports import CaptureRow


def secret_problems(source: str, where: str, consent: Collection[str], form_only: bool = False) -> Iterator[Problem]:
    """Literal secrets in code that would be sent; never what they say.

    Parameters
    ----------
    where : str
        The cell or file, for the message.
    consent : collection of str
        Names that the user declared in ``values=``: sending those is asked for.
    form_only : bool
        Only report what looks like a key by its form.
    """
    for secret in find_secrets(source):
        if secret.name in consent or (form_only and secret.kind == "by its name"):
            continue
        named = f"`{secret.name}` holds a string that" if secret.name else "a string"
        variable = secret.name.upper() if secret.name.isidentifier() else "MY_SECRET"
        send = f", or send it on purpose: values=['{secret.name}']" if secret.name.isidentifier() else ""
        yield Problem(
            f"{where}, line {secret.line}",
            f"{named} looks like a secret ({secret.kind}); secrets are not sent unasked.",
            f"Read it with os.environ['{variable}'] and set environment.environment_variables in the "
            f"configuration{send}.",
        )


def secret_rows(source: str, label: str) -> Iterator[CaptureRow]:
    """Environment variables that hold secrets and that the worker will need."""
    for name in environment_reads(source):
        yield CaptureRow(
            what=name,
            how="environment",
            size=0,
            cell=label,
            status="not sent",
            note="pass it by environment.environment_variables in the configuration",
        )
