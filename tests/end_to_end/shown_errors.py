"""What a notebook shows of an exception in the user's code."""

from __future__ import annotations

import re

from faults import Executed, Gate, Kernel


def wait_while_the_second_attempt_stands(kernel: Kernel, gate: Gate, message: str) -> Executed:
    """Wait in the notebook for an experiment that comes to the gate and fails, twice.

    The first failure has to be shown while the second attempt stands at the gate: it does not wait for the end.
    """
    waiting = kernel.begin("experiment.wait()")
    gate.next().go()
    second = gate.next()
    kernel.shows(waiting, message)
    second.go()
    return kernel.finish(waiting, fails=True)


def assert_told(waited: Executed, place: str, message: str) -> None:
    """Check that an error that came twice was shown once in full, with its place."""
    printed = "".join(waited.printed)  # the last state of the view may have come, too
    assert printed.count(message) == 1, printed
    assert re.search(rf"failed .*, in {re.escape(place.lower())}:\n", printed)
    assert "failed again" in printed
    assert waited.error.startswith("UserCodeError: Experiment")
    assert message in waited.error
    assert place.lower() in waited.error
    assert printed.count(place) == 1
