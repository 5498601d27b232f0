"""Old names of arguments of Keras's optimizers: ``lr``, ``decay``.

tf.keras 2.15 takes ``lr`` and trains with the default of ``learning_rate``; the text in its log is all that says so.
Code that imports ``determined`` was written when these names meant something, and gets that. Other code gets a warning
where it makes the optimizer.

The names are not listed here: an old one is an argument that Keras's present class does not name, and its older class,
``tf.keras.optimizers.legacy``, takes.
"""

from __future__ import annotations

import functools
import inspect
import sys
import warnings
from collections.abc import Callable
from types import FrameType, ModuleType
from typing import Any
from weakref import WeakKeyDictionary

from det_native.capture.first_imports import first_imports

# The module that defines the base class of all optimizers.
_MODULE = "keras.src.optimizers.optimizer"
_RATE = "lr"
_NOTE = "_det_lr"
_LIBRARIES = ("keras", "tensorflow", "det_native", "det_harness")

_warnings: WeakKeyDictionary[Any, str] = WeakKeyDictionary()


def warning_of(optimizer: Any) -> str | None:
    """Return the warning that an optimizer was made with, None if there was none."""
    try:
        return _warnings.get(optimizer)
    except TypeError:  # of another library, and without a hash
        return None


def install() -> None:
    """Watch how optimizers are made from now on, in a Keras that is imported already or will be."""
    if _MODULE in sys.modules:
        _install()
    else:
        first_imports.call_after(_MODULE, _install)


def _install() -> None:
    optimizer: Any = getattr(sys.modules[_MODULE], "Optimizer", None)
    # Keras 3 refuses `lr`, and warns of `decay`: nothing is passed over there.
    if not hasattr(optimizer, "_process_kwargs") or hasattr(optimizer.__init__, _NOTE):
        return
    optimizer.__new__ = staticmethod(_making(optimizer, optimizer.__new__))
    optimizer.__init__ = _noting(optimizer.__init__)
    optimizer._build_learning_rate = _rating(optimizer._build_learning_rate)


def _means_old_names() -> bool:
    """Return whether code of this process has imported ``determined`` and got det_native."""
    alias = sys.modules.get("determined")
    return alias is not None and alias is sys.modules.get("det_native")


def _making(optimizer: type, make: Callable[..., Any]) -> Callable[..., Any]:
    """Return what makes the older class where only that takes the arguments."""

    def new(cls: type, *args: Any, **kwargs: Any) -> Any:
        older = _older(cls, optimizer, args, kwargs) if kwargs and _means_old_names() else None
        return make(cls) if older is None else older

    return new


def _older(cls: Any, optimizer: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    named = {*inspect.signature(cls.__init__).parameters, *inspect.signature(optimizer.__init__).parameters}
    if not cls.__module__.startswith("keras.") or not kwargs.keys() - named - {_RATE}:
        return None
    classes: ModuleType = sys.modules["tensorflow"].keras.optimizers.legacy
    older = getattr(classes, cls.__name__, None)
    if older is None:
        return None
    given = {"learning_rate" if name == _RATE else name: value for name, value in kwargs.items()}
    try:
        return older(*args, **given)
    except TypeError:  # neither class takes these: the present one says what it does not know
        return None


def _noting(init: Callable[..., None]) -> Callable[..., None]:
    """Return an initialisation that notes ``lr`` for the learning rate that is made after it."""

    @functools.wraps(init)
    def noted(self: Any, *args: Any, **kwargs: Any) -> None:
        rate = kwargs.get(_RATE)
        if rate is not None:
            vars(self)[_NOTE] = rate  # past the tracking of attributes
            if _means_old_names():
                del kwargs[_RATE]
        init(self, *args, **kwargs)

    setattr(noted, _NOTE, True)
    return noted


def _rating(build: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Return what makes the variable of a learning rate: of ``lr``, or with a warning that it is not."""

    @functools.wraps(build)
    def built(self: Any, learning_rate: Any) -> Any:
        rate = vars(self).pop(_NOTE, None)
        if rate is None:
            return build(self, learning_rate)
        if _means_old_names():
            return build(self, rate)
        if rate is not learning_rate and rate != learning_rate:
            name = type(self).__name__
            text = (
                f"{name}(lr={rate}): Keras ignores lr and trains with learning_rate={learning_rate}. "
                f"Write {name}(learning_rate={rate})."
            )
            _warnings[self] = text
            warnings.warn(text, UserWarning, stacklevel=_levels_to_the_user())
        return build(self, learning_rate)

    return built


def _levels_to_the_user() -> int:
    """Return the ``stacklevel`` of a warning that shows the line which makes the optimizer."""
    level = 1
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] in _LIBRARIES:
        frame = frame.f_back
        level += 1
    return level
