"""A loader of the user's, as ``context.wrap()`` gives it back: plain passes, counted, on the trial's device."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import torch

from det_native.errors import InvalidDataError
from det_native.process.streams import current_streams, decoded, encoded, put_back
from det_native.pytorch.nesting import to_device
from det_native.pytorch.passes import generators_of, set_states, states_of

_LIBRARIES = ("random", "numpy", "torch")

#: Gives the batches of one pass over what was wrapped; a run puts its own into the place of plain ``iter``.
PassOf = Callable[["WrappedLoader"], Iterator[Any]]


@dataclass(eq=False)
class Loading:
    """What the loaders of one context have in common.

    Attributes
    ----------
    device : torch.device
        Where batches go.
    taken : int
        Batches that passes have given.
    most : int or None
        How many a pass gives at most, in a quick check.
    pass_of : callable
        Begins a pass over a loader.
    dataset_of : callable
        Returns the dataset of a loader, as the loop sees it.
    """

    device: torch.device
    taken: int = 0
    most: int | None = None
    pass_of: PassOf = field(default_factory=lambda: WrappedLoader.batches)
    dataset_of: Callable[[WrappedLoader], Any] = field(default_factory=lambda: WrappedLoader.whole_dataset)


class WrappedLoader:
    """Batches for a user's own loop over ``context.epochs()``.

    A pass over it is a pass over the loader itself: the same batches, the same random numbers. Batches come on the
    trial's device; on several slots each gets its share of every batch that the loop trains on.

    Parameters
    ----------
    loader : iterable
        A loader of torch's or ours, a list of batches, or another iterable of tensors.
    """

    #: It holds no weights; what looks at a model's content goes no further.
    _det_known_by_identity = True

    def __init__(self, loader: Any, loading: Loading) -> None:
        self.loader = loader
        self.loading = loading

    @property
    def plain(self) -> Any:
        """The torch loader that gives the batches, or what else was wrapped."""
        return getattr(self.loader, "_loader", self.loader)

    @property
    def generators(self) -> Mapping[str, torch.Generator]:
        """Generators of random numbers that the loader has of its own, by name."""
        return generators_of(self.plain) if isinstance(self.plain, torch.utils.data.DataLoader) else {}

    def __iter__(self) -> LoaderPass:
        return LoaderPass(self)

    def batches(self) -> Iterator[Any]:
        """Begin a pass; batches come as the loader has them."""
        limit = self.loading.most
        whole = iter(self.plain)
        return whole if limit is None else islice(whole, limit)

    @property
    def dataset(self) -> Any:
        """The dataset; of a pass that one of several slots has a share of, that share: its length is what counts."""
        return self.loading.dataset_of(self)

    def whole_dataset(self) -> Any:
        """Return the dataset of the loader itself."""
        return self.loader.dataset

    def __len__(self) -> int:
        return len(self.loader)

    def __bool__(self) -> bool:
        """Return whether there are batches; True where that cannot be known."""
        try:
            return len(self.loader) > 0
        except TypeError:
            return True

    def __getitem__(self, index: Any) -> Any:
        return self.loader[index]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name in ("loader", "loading"):
            raise AttributeError(name)
        return getattr(self.loader, name)

    def __repr__(self) -> str:
        return f"<{type(self.loader).__name__}, wrapped by context.wrap()>"


class LoaderPass(Iterator[Any]):
    """One pass over a wrapped loader.

    A pass that the program keeps beyond an epoch can be pickled: it is begun again, steps over the batches that it has
    given, and goes on.
    """

    #: It holds no weights.
    _det_known_by_identity = True
    #: A name of a loop that stands for it is kept in checkpoints.
    _det_can_go_on = True

    __slots__ = ("__weakref__", "_loader", "_loading", "_next", "_start", "taken")

    def __init__(self, loader: WrappedLoader) -> None:
        self._loader = loader
        self._loading = loader.loading
        self._start = _streams(loader)  # where the random numbers stood at its beginning
        self._next: Callable[[], Any] = self._mover(loader.loading.pass_of(loader))
        self.taken = 0

    def __iter__(self) -> LoaderPass:
        return self

    def __next__(self) -> Any:
        batch = self._next()
        self.taken += 1
        self._loading.taken += 1
        return batch

    def _mover(self, batches: Iterator[Any]) -> Callable[[], Any]:
        """Return what gives the next batch on the trial's device."""
        device, plain = self._loading.device, batches.__next__
        return plain if device.type == "cpu" else lambda: to_device(plain(), device)

    def __len__(self) -> int:
        return len(self._loader) - self.taken

    def __reduce__(self) -> Any:
        return _resumed, (self._loader, self.taken, self._start)

    def _step_over(self, start: Mapping[str, Any], taken: int) -> None:
        """Begin again, and be where so many batches have been given; the random numbers stay as they are."""
        outside = _streams(self._loader)
        _set_streams(self._loader, start)
        batches = self._loading.pass_of(self._loader)
        for _ in islice(batches, taken):
            pass
        _set_streams(self._loader, outside)
        self._next, self.taken, self._start = self._mover(batches), taken, dict(start)


def _resumed(loader: WrappedLoader, taken: int, start: Mapping[str, Any]) -> LoaderPass:
    resumed = LoaderPass.__new__(LoaderPass)
    resumed._loader, resumed._loading, resumed.taken, resumed._start = loader, loader.loading, taken, dict(start)

    def catch_up() -> Any:
        resumed._step_over(start, taken)
        return resumed._next()

    resumed._next = catch_up  # not now: what else is restored may be needed for it, the random numbers above all
    return resumed


def _streams(loader: WrappedLoader) -> dict[str, Any]:
    return {"streams": current_streams(), "generators": states_of(loader.generators)}


def _set_streams(loader: WrappedLoader, states: Mapping[str, Any]) -> None:
    put_back(decoded(encoded(states["streams"])), _LIBRARIES)
    set_states(loader.generators, states["generators"])


def wrapped_loader(owner: str, loader: Any, loading: Loading) -> WrappedLoader:
    """Return a loader for a loop over ``context.epochs()``.

    Raises
    ------
    InvalidDataError
        If it gives no batches at all.
    """
    if isinstance(loader, WrappedLoader):
        raise InvalidDataError(f"{owner}: this loader is wrapped already; call wrap() once for it.")
    if not isinstance(loader, Iterable):
        raise InvalidDataError(f"{owner}: {type(loader).__name__} gives no batches.")
    try:
        length = len(loader)  # type: ignore[arg-type]
    except TypeError:
        length = None
    if length == 0:
        raise InvalidDataError(
            f"{owner} was given a {type(loader).__name__} without batches: its dataset has fewer records than one "
            "batch, or none."
        )
    return WrappedLoader(loader, loading)
