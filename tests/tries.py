"""Tries of a soak, counted: how many there were, how many ended as they should, and the seconds that recovering took.

``DET_SOAK_SEED`` repeats what was drawn.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from figures import note
from hypothesis import HealthCheck, given, settings
from hypothesis import seed as seeded
from hypothesis.strategies import SearchStrategy
from soak_notes import counts_its_tries


@dataclass
class Tries:
    """What was tried in a block.

    Attributes
    ----------
    seed
        What repeats it; None where Hypothesis says how.
    drawn
        How many cases there were, where not each is one to try.
    tried, survived
        How many were tried, and how many of these ended as they should.
    seconds
        From each fault to its recovery, where that is measured.
    failed
        How many raised an error.
    stopped
        Whether Ctrl-C has ended it. Then nobody knows of the others whether they are lost, and they do not count.
    """

    seed: int | None = None
    drawn: int = 0
    tried: int = 0
    survived: int = 0
    seconds: list[float] = field(default_factory=list)
    failed: int = 0
    stopped: bool = False

    @contextmanager
    def attempt(self) -> Iterator[None]:
        """Count the block as a try, which survives if nothing is raised."""
        self.tried += 1
        try:
            yield
        except KeyboardInterrupt:
            self.stopped = True
            raise
        except BaseException:
            self.failed += 1
            raise
        self.survived += 1


def drawn_seed() -> int:
    """Return the seed that ``DET_SOAK_SEED`` says, or a new one; print it, for who reads why a test failed."""
    seed = int(os.environ.get("DET_SOAK_SEED") or random.SystemRandom().randrange(10**6))
    print(f"DET_SOAK_SEED={seed}")
    return seed


@contextmanager
def counted(name: str, seed: int | None = None) -> Iterator[Tries]:
    """Count the tries in the block, and note them at its end, however it ends."""
    counts_its_tries()
    tries = Tries(seed)
    note(name, begun=True, seed=seed)
    whole = False
    try:
        yield tries
        whole = True
    except KeyboardInterrupt:
        tries.stopped = True
        raise
    finally:
        if tries.stopped:
            tries.tried = tries.survived + tries.failed
        whole = whole and tries.tried == tries.survived
        note(
            name,
            date=time.strftime("%Y-%m-%d"),
            drawn=tries.drawn or tries.tried,
            tries=tries.tried,
            survived=tries.survived,
            lost=tries.tried - tries.survived,
            seconds=[round(seconds, 2) for seconds in tries.seconds],
            seed=tries.seed,
            end="stopped early" if tries.stopped else "" if whole else "failed",
        )


def draw(name: str, most: int, check: Callable[..., None], **strategies: SearchStrategy[object]) -> None:
    """Check as many drawn cases, and note them.

    Parameters
    ----------
    name
        What is tried, for the table.
    most
        How many cases.
    check
        Takes a value of each strategy by its name; raises where something is wrong.
    **strategies
        What is drawn.
    """
    seed = drawn_seed()
    with counted(name, seed) as tries:

        @seeded(seed)
        @settings(max_examples=most, deadline=None, database=None, suppress_health_check=list(HealthCheck))
        @given(**strategies)
        def case(**drawn: object) -> None:
            with tries.attempt():
                check(**drawn)

        case()
