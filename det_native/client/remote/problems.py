"""What ``ssh`` says when it does not connect, as one sentence with what to do."""

from __future__ import annotations

import re

from det_native.client.remote.target import Target
from det_native.errors import AuthenticationError, MasterError, MasterUnreachableError

# What ssh prints besides the reason.
_NOISE = re.compile(r"^(Warning: |debug\d:|Pseudo-terminal|@+$|\*\* )")
_CHANGED_LINE = re.compile(r"Offending \S+ key in (\S+)")


def problem_of(text: str, target: Target) -> MasterError:
    """Return the error for what ``ssh`` has said.

    Parameters
    ----------
    text : str
        Its messages.
    target : Target
        Where it was to connect to.

    Returns
    -------
    AuthenticationError or MasterUnreachableError
        The latter where trying again later may help.
    """
    lines = [line.strip() for line in text.splitlines() if line.strip() and not _NOISE.match(line.strip())]
    said = lines[-1].rstrip(".") if lines else "it says nothing"
    if "REMOTE HOST IDENTIFICATION HAS CHANGED" in text:
        found = _CHANGED_LINE.search(text)
        place = f" than the one in {found[1]}" if found else " than before"
        return AuthenticationError(
            f"{target.host} shows another host key{place}: somebody may be in between, and nothing was sent. If the "
            f'machine was set up anew, `ssh-keygen -R "{target.known_as}"` forgets the old key, and `{target.typed}` '
            "in a terminal shows the new one."
        )
    if "Host key verification failed" in text:
        return AuthenticationError(
            f"The host key of {target.host} is not known yet: run `{target.typed}` once in a terminal, compare the key "
            "that it shows, and accept it."
        )
    if "Permission denied" in text or "Too many authentication failures" in text:
        return AuthenticationError(
            f"{target.host} accepts none of your SSH keys ({said}): `{target.typed}` in a terminal must work without a "
            "question. `ssh-copy-id` brings your key there, `ssh-add` gives one that has a passphrase to the agent."
        )
    if "Could not resolve hostname" in text:
        return MasterUnreachableError(
            f"The host {target.host} is unknown ({said}): check its name in the address and in ~/.ssh/config, and the "
            "network."
        )
    if any(words in text for words in ("Bad configuration option", "bad configuration options", "Bad owner or perm")):
        return AuthenticationError(f"ssh does not start ({said}): mend your ~/.ssh/config.")
    return MasterUnreachableError(
        f"{target.machine} cannot be reached by SSH ({said}): check that the machine is on, its port and the network; "
        f"`{target.typed}` in a terminal shows the same."
    )
