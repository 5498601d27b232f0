"""Following the log: what calls of libraries do besides changing values: settings, random numbers, risks."""

from __future__ import annotations

from collections.abc import Iterable

from det_native.capture.bindings import Binding
from det_native.capture.events import Call, Stream
from det_native.capture.flow_binding import BindingFlow
from det_native.capture.vocabulary import (
    CONTAINER_CHANGES,
    DISPLAY_LIBRARIES,
    SEEDING,
    effect_of,
    risk_of,
    stream_of,
    weights_from,
)


class LibraryFlow(BindingFlow):
    """Notes what libraries do."""

    def _library(self, event: Call, full: tuple[str, ...]) -> None:
        index = self.step.index
        effect, stream = effect_of(full), stream_of(full)
        if self.step.noted and stream is not None and full[-1] in SEEDING:
            effect = None  # what is drawn after it begins from the states that were noted
        if effect is not None and full[0] not in DISPLAY_LIBRARIES:
            self._effect(effect)
        risk = risk_of(full)
        if risk is not None:
            self.noted += 1
            self.flow.risks.setdefault(index, []).append(f"{risk}: {'.'.join(full)}()")
        if self.step.noted:
            return
        weights = weights_from(full)
        if weights is not None:
            self._draws(weights)
        if stream is None or not event.keywords.isdisjoint({"random_state", "generator"}):
            return
        self.noted += 1
        name, seeds = _named(stream[0]), stream[1]
        if seeds:
            self._seeds(stream[0])
            return
        self._draws(stream[0])
        binding = self.environment.get(name)
        if binding is not None:
            self._need(name, binding, (name,), event.line)
            self.environment[name] = binding.changed(index, accumulates=False)

    def _seen_streams(self) -> None:
        """Take up what was drawn or seeded in a way that the cell's text does not show."""
        index = self.step.index
        for stream in () if self.step.noted else sorted(self.step.seen.drew):
            if index in self.flow.seeds.get(stream, set()) | self.flow.draws.get(stream, set()):
                continue
            if stream in self.step.seen.seeded:
                self._seeds(stream)
                self._effect(f"the random numbers of {stream}")
            else:
                self._draws(stream)

    def _seeds(self, stream: Stream) -> None:
        index = self.step.index
        self.flow.seeds.setdefault(stream, set()).add(index)
        self.environment[_named(stream)] = Binding(frozenset({index}), tokens=frozenset({next(self.tokens)}))

    def _draws(self, stream: Stream) -> None:
        index = self.step.index
        self.noted += 1
        self.flow.draws.setdefault(stream, set()).add(index)

    def _loaded(self, names: Iterable[str]) -> None:
        """Note that loaders may be gone through, each time with a seed that torch draws."""
        if any(name in self.environment and self.environment[name].kind == "loader" for name in names):
            self._draws("torch")

    def _sets_module(self, full: tuple[str, ...]) -> bool:
        """Whether a call changes what one of the user's own modules keeps."""
        if full[0] not in self.facts.local_modules:
            return False
        return full in self.facts.setters or (len(full) > 2 and full[-1] in CONTAINER_CHANGES)


def _named(stream: Stream) -> str:
    return f"<{stream} random numbers>"
