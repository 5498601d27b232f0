"""Whether two processes have made the same objects: a table with a digest for each object that some roots lead to."""

from __future__ import annotations

import functools
import sys
import types
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from det_native.heap.digests import digest
from det_native.heap.edges import ATOMS, KEPT, UNREADABLE, Alike, Kind, is_value
from det_native.heap.kinds.functions import READS, ReadGeneratorKind, ReadingKind, is_read
from det_native.heap.kinds.instances import CLASS, AttributesKind, holds_more
from det_native.heap.kinds.numpy_ import fields_of
from det_native.heap.names import ROOTS
from det_native.heap.ownership import is_users, is_users_module
from det_native.heap.roots import LOOP
from det_native.heap.rounding import Fingerprint, agree
from det_native.heap.snapshot import Snapshot, as_written
from det_native.heap.source import signature_digest, source_digest
from det_native.heap.texts import Texts
from det_native.heap.words import describe, in_short

#: Objects that are compared one by one; the others of a part together.
MOST_ENTRIES = 10_000
_READING = ReadingKind()
_SPECIAL: dict[type, Kind] = {types.FunctionType: _READING, types.GeneratorType: ReadGeneratorKind()}
#: Stands for a text that must not be shown, nor sent.
SECRET = "a text that looks like a secret"
_REST = "rest of "
_ARRAYS = ("ndarray", "Storage", "Tensor", "Variable", "DataFrame", "Series", "Dataset", "Parameter")


class Entry(NamedTuple):
    """What is known of one object, or of a plain value that has a name.

    Attributes
    ----------
    part, path : str
        Which of the roots it belongs to, and the way from there.
    cls : str
        The full name of its class.
    exact : str
        A digest of its own state, without that of the objects that it holds.
    rounding : (str, str)
        A digest of all but the floating-point numbers, and what is known of those, block by block.
    links : str
        A digest of the addresses of what it holds that was reached in another way, too.
    text : str
        The object in a few words; empty before :meth:`Table.add_words`.
    source : str
        Of a function: a digest of its source; empty where that is not known.
    """

    part: str
    path: str
    cls: str
    exact: str
    rounding: tuple[str, str]
    links: str
    text: str
    source: str

    @property
    def title(self) -> str:
        """The object as messages call it."""
        path = as_written(self.path)
        return f"{self.part}{path}" if not path or path[0] in ".[" else f"{self.part}: {path}"


def differs(there: Entry, here: Entry) -> bool:
    """Whether two processes have other objects at one address."""
    # Of code whose source one of them does not know, only the parameters are compared.
    source = there.source and here.source and there.source != here.source
    return bool(source) or (there.cls, there.exact, there.links) != (here.cls, here.exact, here.links)


def is_rounding(there: Entry, here: Entry) -> bool:
    """Whether two objects that differ do so only in the last digits of numbers."""
    same = (there.cls, there.links, there.source, there.rounding[0]) == (
        here.cls,
        here.links,
        here.source,
        here.rounding[0],
    )
    return same and agree(there.rounding[1], here.rounding[1])


class Table:
    """What some roots lead to, those variables too that the user's functions read which are found on the way.

    Parameters
    ----------
    given : mapping of str to object
        The roots, by what they are called in messages.
    namespace : dict
        The notebook's names.
    folder : str
        Where the user's files are: what lies in there has the same path in every process.
    is_secret : callable
        Whether a text, of this name, must not be shown.
    skipped : iterable of object
        Objects that are not compared.
    most_bytes : int, optional
        Arrays with more are not read.

    Attributes
    ----------
    entries : dict of str to Entry
        By address, the same in every process.
    numbers : dict of str to list of int
        The objects of the snapshot that an entry is about.
    holders : dict of str to (int, object)
        Of an entry about a plain value: the object that holds it, and the label that leads to it.
    secrets : set of str
        Texts that must not be shown.
    not_compared : list of str
        Sentences on what cannot be read.
    """

    def __init__(
        self,
        given: Mapping[str, Any],
        namespace: dict[str, Any] | None = None,
        *,
        folder: str = "",
        is_secret: Callable[[str, str], bool] = lambda text, name: False,
        skipped: Iterable[Any] = (),
        most_bytes: int | None = None,
    ) -> None:
        self.given = dict(given)
        roots = {"namespace": ({} if namespace is None else namespace, KEPT), "given": (self.given, ROOTS)}
        # The files of the user's modules are the same; what code reads of them is found by its name.
        modules = [module for name, module in [*sys.modules.items()] if name != "__main__" and is_users_module(name)]
        kept = dict.fromkeys(map(id, (*skipped, *modules)), KEPT)
        self.snapshot = Snapshot(roots, kept, _SPECIAL, most_bytes)
        self.entries: dict[str, Entry] = {}
        self.numbers: dict[str, list[int]] = {}
        self.holders: dict[str, tuple[int, Any]] = {}
        self.secrets: set[str] = set()
        self.not_compared: list[str] = []
        self._texts = Texts(folder)
        self._is_secret = is_secret
        self._keys: list[str] = [""] * self.snapshot.first
        #: By number: part, path, and which object is shown for it.
        self._places: list[tuple[str, str, int]] = [("", "", number) for number in range(self.snapshot.first)]
        self._shown: dict[str, Any] = {}
        self._hidden: set[int] = set()  # with all that they hold
        self._left_out: set[int] = set()
        self._rest: dict[str, Fingerprint] = {}
        self._find_places()
        single = range(self.snapshot.first, min(len(self.snapshot.objects), MOST_ENTRIES))
        for number in range(self.snapshot.first):
            self._take_values(number)
        for number in single:
            self._take(number)
        for number in range(MOST_ENTRIES, len(self.snapshot.objects)):
            self._take_rest(number)
        for part, fingerprint in self._rest.items():
            self._enter(f"{_REST}{part}", part, " and what is behind its first parts", "", fingerprint, "")

    def add_words(self) -> None:
        """Give the entries their texts, which need all secrets, and take longer than all else."""
        words = {id(obj): self._in_words(obj) for obj in self._shown.values()}
        for key, obj in self._shown.items():
            self.entries[key] = self.entries[key]._replace(text=words[id(obj)])

    def value(self, key: str) -> Any:
        """Return the plain value that an entry is about."""
        number, label = self.holders[key]
        return self.snapshot.held(number)[label]

    def _find_places(self) -> None:
        snapshot, places, keys = self.snapshot, self._places, self._keys
        for number in range(snapshot.first, len(snapshot.objects)):
            parent = snapshot.parents[number]
            if number < MOST_ENTRIES:
                places.append(self._place_of(number))
                keys.append(self._key(parent, snapshot.label(number)))
            else:
                places.append((places[parent][0], "", number))

    def _take(self, number: int) -> None:
        snapshot = self.snapshot
        parent, obj, kind = snapshot.parents[number], snapshot.objects[number], snapshot.kinds[number]
        place, key = self._places[number], self._keys[number]
        if issubclass(type(obj), type | types.FunctionType) and not is_users(obj):
            return
        if parent in self._hidden or snapshot.kinds[parent].is_alone:
            self._hidden.add(number)
            return
        labels = snapshot.labels_of(number)
        alike = kind.made_alike(labels, snapshot.children[number], snapshot.facts[number])
        is_unread = alike is None and not kind.quiet and (kind.stays or parent < snapshot.first)
        hides_all = isinstance(kind, AttributesKind) and [*labels] == [CLASS] and holds_more(type(obj))
        if kind is UNREADABLE or is_unread or hides_all:
            self._say_unread(number, place)
        if alike is None or not key:
            return
        if len(alike[0]) < len(labels) and type(labels) is not range and kind is not _READING:
            kept = {*map(id, alike[1])}
            others = (snapshot.numbers.get(id(child)) for child in snapshot.children[number] if id(child) not in kept)
            self._left_out.update(child for child in others if child is not None and snapshot.parents[child] == number)
        if number in self._left_out:
            return
        fingerprint = Fingerprint()
        links: list[str] = []
        try:
            self._take_own(number, alike, fingerprint, links)
        except Exception:  # noqa: BLE001 (an object of a library may raise anything)
            self._say_unread(number, place)
            return
        code = getattr(obj, "gi_code", None) if type(obj) is types.GeneratorType else None
        if type(obj) is types.FunctionType and obj.__qualname__ != LOOP:
            code = obj.__code__
        source = (source_digest(code) or "") if code is not None else ""
        self._enter(key, place[0], place[1], snapshot.class_name(number), fingerprint, "", links, source, place[2])
        self.numbers[key] = [number]
        self._take_values(number)

    def _enter(
        self,
        key: str,
        part: str,
        path: str,
        cls: str,
        fingerprint: Fingerprint,
        text: Any,
        links: Sequence[str] = (),
        source: str = "",
        shown: int = 0,
    ) -> None:
        self._shown[key] = self.snapshot.objects[shown] if shown else text
        rounding = fingerprint.loose.hexdigest(), fingerprint.blocks.written()
        link = digest(" ".join(links).encode("utf-8", "surrogatepass")) if links else ""
        self.entries[key] = Entry(part, path, cls, fingerprint.exact.hexdigest(), rounding, link, "", source)

    def _in_words(self, value: Any) -> str:
        number = self.snapshot.numbers.get(id(value), 0)
        try:
            is_long = self._places[number][1] and not self.snapshot.kinds[number].is_whole
            if is_long and not ATOMS.issuperset(map(type, self.snapshot.children[number])):
                return in_short(value)
            text = describe(value)
        except Exception:  # noqa: BLE001 (an object of the user's may raise anything)
            return type(value).__qualname__
        return SECRET if any(secret in text for secret in self.secrets) else text[:160]

    def _key(self, parent: int, label: Any) -> str:
        """Return the address of what a label leads to; empty if it looks like another."""
        if is_read(label):  # whichever function reads it
            return digest(f"{READS} {self.snapshot.objects[parent].__module__} {label[1]}".encode())
        if label is None or (parent >= self.snapshot.first and not self._keys[parent]):
            return ""
        return digest(f"{self._keys[parent]} {label!r}".encode("utf-8", "surrogatepass"))

    def _place_of(self, number: int) -> tuple[str, str, int]:
        snapshot = self.snapshot
        parent, obj = snapshot.parents[number], snapshot.objects[number]
        label = snapshot.label(number) if number < MOST_ENTRIES else None
        part, path, shown = self._places[parent]
        if type(obj) is types.FunctionType and is_users(obj):
            return f"the function {obj.__qualname__}", "", number
        if parent < snapshot.first:
            return str(label), "", number
        if label is not None and is_read(label):
            return self._read_by(parent, label[1]), "", number
        if number >= MOST_ENTRIES or (snapshot.kinds[parent].is_whole and type(obj) not in (dict, list)):
            return part, path, shown
        return part, f"{path}{snapshot.kinds[parent].step(label)}", number

    def _read_by(self, function: int, name: str) -> str:
        return f"{name}, read by {self.snapshot.objects[function].__qualname__}"

    def _take_values(self, number: int) -> None:
        """Enter the plain values that the roots and what functions read are."""
        snapshot = self.snapshot
        is_root = snapshot.objects[number] is self.given
        if not is_root and snapshot.kinds[number] is not _READING:
            return
        for label, value in snapshot.held(number).items():
            if not is_value(value) or not (is_root or is_read(label)):
                continue
            key = self._key(number, label)
            if key in self.entries:
                continue
            part = str(label) if is_root else self._read_by(number, label[1])
            fingerprint = Fingerprint()
            self._value(value, str(label) if is_root else label[1], fingerprint)
            self._enter(key, part, "", type(value).__qualname__, fingerprint, value)
            self.holders[key] = number, label

    def _say_unread(self, number: int, place: tuple[str, str, int]) -> None:
        if not self.snapshot.is_private(number):
            entry = Entry(place[0], place[1], "", "", ("", ""), "", "", "")
            cls = self.snapshot.classes[number].__name__
            self.not_compared.append(f"{entry.title} is not compared on the worker: {cls} cannot be read.")

    # The state of one object.

    def _take_own(self, number: int, alike: Alike, into: Fingerprint, links: list[str]) -> None:
        snapshot = self.snapshot
        labels, children, facts = alike
        kind, obj = snapshot.kinds[number], snapshot.objects[number]
        into.both(f"{len(children)} {_code_of(obj)}")
        seen = kind.seen_by(obj, snapshot.objects[snapshot.parents[number]])
        if seen is not None and self._holders[id(obj)] == 1:
            self._described(seen, into)
        else:
            self._content(kind, obj, facts, snapshot.facts[number], self._numbers_of(number), into)
        for part in kind.described(obj):
            self._described(part, into)
        if not kind.is_ordered:
            into.both(f"{sorted(map(str, filter(None, map(snapshot.appearance, children))))}")
            return
        if type(labels) is range and self._plain_row(children, into):
            return
        pairs = [*zip(labels, children, strict=True)]
        # In which order attributes were set is no matter.
        for label, child in pairs if type(labels) is range else sorted(pairs, key=lambda pair: repr(pair[0])):
            name = label if type(label) is str else "" if type(labels) is range else repr(label)
            into.both(name)
            if is_value(child):
                self._value(child, name, into)
            elif issubclass(type(child), type | types.FunctionType | types.BuiltinFunctionType) and not is_users(child):
                into.both(f"{child.__module__}.{child.__qualname__}")
            else:
                self._link(number, label, child, links)

    @functools.cached_property
    def _holders(self) -> Counter[int]:
        """How often each object is held by others."""
        return Counter(id(child) for children in self.snapshot.children for child in children)

    def _plain_row(self, values: Sequence[Any], into: Fingerprint) -> bool:
        """Take a list of plain values in one step, if it is one."""
        classes = {*map(type, values)}
        if not ATOMS.issuperset(classes) or (float in classes and len(classes) > 1):
            return False
        if float in classes:
            into.floats(values)
            return True
        self._find_secrets(values, "")
        into.both(self._texts.of(values))
        return True

    def _described(self, part: Any, into: Fingerprint) -> None:
        if isinstance(part, str):
            into.both(self._texts.of(part))
        elif part.dtype.kind in "fc":
            into.exact.update(part.tobytes())
            into.numbers(part)
        else:
            into.both(f"{part.dtype} {part.shape} {digest(part.tobytes())}")

    def _content(self, kind: Kind, obj: Any, facts: Any, whole: Any, numbers: Any, into: Fingerprint) -> None:
        if numbers is None:
            into.both(self._texts.of(facts))
            return
        if numbers.dtype.names:  # what lies between the fields of records tells nothing
            into.both(f"{numbers.dtype} {numbers.shape}")
            for field in fields_of(numbers):
                self._described(field, into)
            return
        content = f"{kind.exact_content(obj, whole)}"
        if numbers.dtype.kind in "fcV":
            into.exact.update(content.encode())
            into.numbers(numbers)
        else:
            into.both(f"{numbers.dtype} {numbers.shape} {content}")

    def _link(self, number: int, label: Any, child: Any, links: list[str]) -> None:
        snapshot = self.snapshot
        there = snapshot.numbers.get(id(child))
        if there is None or snapshot.kinds[there].stays or there >= MOST_ENTRIES:
            return
        if snapshot.parents[there] != number or snapshot.label(there) != label:
            links.append(f"{label!r} {self._keys[there]}")

    def _numbers_of(self, number: int) -> Any:
        snapshot = self.snapshot
        if type(snapshot.kinds[number]).numbers is Kind.numbers:
            return None
        try:
            numbers = snapshot.kinds[number].numbers(
                snapshot.objects[number], snapshot.objects[snapshot.parents[number]]
            )
        except Exception:  # noqa: BLE001 (of a library)
            return None
        return numbers if hasattr(numbers, "dtype") and hasattr(numbers, "shape") else None

    def _value(self, value: Any, name: str, into: Fingerprint) -> None:
        cls = type(value)
        if cls is float:
            into.floats([value])
        elif cls is types.CodeType:
            pass  # compared by its source
        elif cls.__module__ == "numpy" and hasattr(value, "dtype") and value.dtype.kind in "fc":
            into.exact.update(value.tobytes())
            into.numbers(value.reshape(1))
        else:
            if cls is str:
                self._find_secrets((value,), name)
            into.both(self._texts.of(value))

    def _find_secrets(self, values: Sequence[Any], name: str) -> None:
        texts = [value for value in values if type(value) is str and len(value) > 7]
        if texts and self._is_secret("\n".join(texts), name):
            self.secrets.update(text for text in texts if self._is_secret(text, name))

    def _take_rest(self, number: int) -> None:
        """Add an object to the common digest of those of its part that are not compared one by one."""
        snapshot, part = self.snapshot, self._places[number][0]
        kind, children, facts = snapshot.kinds[number], snapshot.children[number], snapshot.facts[number]
        into = self._rest.get(part)
        if into is None:
            into = self._rest[part] = Fingerprint()
            self.numbers[f"{_REST}{part}"] = []
        self.numbers[f"{_REST}{part}"].append(number)
        if kind.stays or not kind.is_ordered:
            return
        if facts is not None:
            alike = kind.made_alike(snapshot.labels_of(number), children, facts)
            if alike is None:
                return
            self._content(kind, snapshot.objects[number], alike[2], facts, self._numbers_of(number), into)
            children = alike[1]
        classes = {*map(type, children)}
        if classes == {float}:
            into.floats(children)
            return
        values = children if ATOMS.issuperset(classes) else [c if is_value(c) else None for c in children]
        if str in classes:
            self._find_secrets(values, "")
        into.both(f"{snapshot.classes[number].__name__} {self._texts.masked(repr(values))}")


def _code_of(obj: Any) -> str:
    """Return what a function is called with, and the name of one that is bound to an object."""
    if type(obj) is types.FunctionType:
        return "" if obj.__qualname__ == LOOP else signature_digest(obj.__code__)
    return obj.__name__ if issubclass(type(obj), types.BuiltinFunctionType | types.MethodType) else ""


def differences(there: Mapping[str, Entry], here: Mapping[str, Entry]) -> Iterator[tuple[str, Entry, Entry]]:
    """Yield the addresses at which two processes differ, with both entries.

    What only one of them has follows from its holder, which differs, too.
    """
    for key, entry in there.items():
        other = here.get(key)
        if other is not None and differs(entry, other):
            yield key, entry, other


def is_array(cls: str) -> bool:
    """Whether a class, by its full name, is of arrays or tables."""
    return any(word in cls for word in _ARRAYS)
