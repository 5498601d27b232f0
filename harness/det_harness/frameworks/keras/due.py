"""When Keras validates by itself in a training whose validations the schedule decides on."""

from __future__ import annotations

from collections.abc import Callable


class DueValidations(list[int]):
    """The epochs after which a validation is due; known only once they have ended.

    Given to Keras as ``validation_freq``, which takes a list: so its callbacks see, at the end of an epoch, the
    validation that the schedule wants there.
    """

    def __init__(self) -> None:
        super().__init__()
        self._is_due: Callable[[], bool] = lambda: False

    def ask(self, is_due: Callable[[], bool]) -> None:
        """Take what knows, when an epoch has ended, whether a validation is due."""
        self._is_due = is_due

    def __contains__(self, epoch: object) -> bool:
        return self._is_due()
