"""Values as bytes, for a process that has run the same cells: what they share stays shared.

Of names, classes and functions of cells go by reference: the receiver has run their cells. What the names have there
takes the state in place where that is wanted. What a training call reaches goes whole, but for secrets and what is too
large.
"""

from __future__ import annotations

import io
import os
import pickle
import sys
import types
from collections import Counter
from collections.abc import Callable, Collection, Mapping, MutableMapping, Sequence
from functools import cached_property, partial, reduce
from typing import Any, TypeVar

from det_native.errors import BundleCheckError
from det_native.heap.compare import Table
from det_native.heap.digests import size_of
from det_native.heap.edges import OF_DET_NATIVE, Kind, Missing, full_name, kind_of, write_new
from det_native.heap.graft import graft_names
from det_native.heap.kinds.functions import is_read
from det_native.heap.kinds.instances import AttributesKind
from det_native.heap.names import ROOTS
from det_native.heap.ownership import is_offered
from det_native.heap.packing import Output
from det_native.heap.pickling import PLAIN, HeapPickler, path_elsewhere
from det_native.heap.snapshot import Snapshot
from det_native.heap.stack import run_with_deep_stack
from det_native.heap.unpacking import HeapUnpickler

T = TypeVar("T")

#: Called with each object that is pickled: what is pickled in its place, of code where the receiver has it, or None.
Look = Callable[[Any], Any]
#: What stored values begin with: earlier versions wrote another format.
_FORMAT = b"det_native values 2\n"
#: The method by which an object of det_native's own travels, else than it is pickled.
TRAVELS = "_det_travels"
_NUMBERS = frozenset({int, float, bool, complex, type(None)})
_LIBRARIES_WITH_PARTS = frozenset({"keras", "tf_keras", "tensorflow"})
_MEMORY = frozenset({"numpy.ndarray", "torch.storage.UntypedStorage"})
_MANY = 10_000  # members of a container, or characters, from which on it may be too large
_NUMBER_BYTES = 9  # of one in a pickle
_LONGEST_PATH = 4_096  # characters; a longer text is data


class AnotherBuildError(ValueError):
    """The state of an object does not fit the one that is there; `name` has it."""

    def __init__(self, name: str) -> None:
        super().__init__(f"`{name}` is of another build")
        self.name = name


def code_at(path: str) -> tuple[str, str]:
    """Return what stands for a class or function that the receiver has under a name: ``Net``, ``Net.Part``."""
    return "code", path


def stand_in(what: str) -> tuple[str, str]:
    """Return what stands for an object that stays behind: what is in its place there keeps its state."""
    return "missing", what


class ValuePickler(HeapPickler):
    """Pickles values of names; see :func:`write_values`.

    With `only_state`, objects are pickled by their attributes, for others of their classes to take them; what cannot be
    pickled is left out. Else nothing is left out: `missing` has what could not be pickled. With `guards`, what cannot
    be made is left out where it is read.
    """

    def __init__(
        self, output: Any, values: Mapping[str, Any], look: Look, *, only_state: bool, guards: bool = False
    ) -> None:
        super().__init__(output, Snapshot({}), (), exact=True, reopen=None)
        self._values, self._look, self._only_state, self._guards = values, look, only_state, guards

    def persistent_id(self, obj: Any) -> Any:
        cls = type(obj)
        if cls in _NUMBERS:
            return None
        reference = self._look(obj)
        if reference is not None:
            return reference
        if cls is str:
            is_path = obj.startswith(("/", "~/")) and len(obj) < _LONGEST_PATH
            return path_elsewhere(obj) if is_path else None
        if cls in PLAIN:
            return self.put_off(obj) if cls in (set, dict) else None
        kind = kind_of(obj)
        if not kind.stays or _pickles_itself(obj, kind):
            return None
        self.missing.append((obj, kind.stays, False))
        return stand_in(kind.stays)

    def reducer_override(self, obj: Any) -> Any:
        kind = kind_of(obj)
        if kind.stays and _pickles_itself(obj, kind):
            own = getattr(type(obj), TRAVELS, None)
            return obj.__reduce_ex__(5) if own is None else own(obj)
        return super().reducer_override(obj)

    def reduced_by_kind(self, obj: Any, kind: Kind) -> Any:
        if self._only_state:
            return getattr(kind, "reduced_alone", kind.reduce)(obj)
        if type(kind) is AttributesKind:
            return NotImplemented  # as the user's class says
        if type(obj).__module__.partition(".")[0] in _LIBRARIES_WITH_PARTS and id(obj) in self._parts:
            return part_of, self._parts[id(obj)]
        if self._is_small_view(obj):
            return kind.reduce(_alone(obj)) if full_name(type(obj)) == "torch.Tensor" else NotImplemented
        return kind.reduce(obj)

    def guarded(self, reduced: Any) -> Any:
        return super().guarded(reduced) if self._guards else reduced

    @cached_property
    def _reached(self) -> Snapshot:
        return Snapshot({"": (dict(self._values), ROOTS)})

    @cached_property
    def _parts(self) -> dict[int, tuple[Any, int]]:
        """By identity, the parts of models, each with the model that makes it."""
        if self._only_state:
            return {}
        models = [
            (kind.made_parts(obj), obj) for obj, kind in zip(self._reached.objects, self._reached.kinds, strict=True)
        ]
        parts: dict[int, tuple[Any, int]] = {}
        for made, model in sorted(models, key=lambda model: len(model[0])):
            parts |= {id(part): (model, place) for place, part in enumerate(made) if part is not model}
        return parts

    def _is_small_view(self, obj: Any) -> bool:
        """Whether an array looks at a small part of memory of which no other part travels: it travels without that."""
        memory = _memory(obj)
        return memory is not None and id(memory) in self._memory_of_small_views

    @cached_property
    def _memory_of_small_views(self) -> set[int]:
        reached = self._reached
        views = [(obj, memory) for obj in reached.objects if (memory := _memory(obj)) is not None]
        sizes: Counter[int] = Counter()
        for view, memory in views:
            sizes[id(memory)] += size_of(view)
        holders = Counter(id(child) for children in reached.children for child in children if id(child) in sizes)
        only_views = Counter(id(memory) for _, memory in views)
        return {
            id(memory)
            for _, memory in views
            if only_views[id(memory)] == holders[id(memory)] and 2 * sizes[id(memory)] <= size_of(memory)
        }


def _pickles_itself(obj: Any, kind: Kind) -> bool:
    return kind is OF_DET_NATIVE or hasattr(type(obj), TRAVELS)


def _memory(array: Any) -> Any:
    """Return the object whose memory an array of numpy or a tensor of PyTorch looks at, None if that is all its own."""
    name = full_name(type(array))
    looks = name == "torch.Tensor" or (name == "numpy.ndarray" and array.base is not None)
    children = kind_of(array).read_state(array)[0] if looks else ()
    return next((child for child in children[:1] if full_name(type(child)) in _MEMORY), None)


def _alone(tensor: Any) -> Any:
    return tensor.detach().clone().requires_grad_(tensor.requires_grad and tensor.is_leaf)


def part_of(model: Any, place: int) -> Any:
    """Return the part of a model that was made again."""
    return kind_of(model).made_parts(model)[place]


def write_values(
    values: Mapping[str, Any],
    output: Callable[[], T],
    look: Look = lambda obj: None,
    *,
    only_state: Collection[str] = (),
) -> tuple[T, Sequence[tuple[Any, str]]]:
    """Pickle values of names.

    Parameters
    ----------
    output : callable
        Returns what to write to.
    look : callable
        See :data:`Look`.
    only_state : collection of str
        Names of which only the state is pickled, for objects that are there.

    Returns
    -------
    output
    sequence of (object, str)
        What could not be pickled and has been left out, with what it is.
    """

    def write() -> tuple[T, Sequence[tuple[Any, str]]]:
        into: Any = output()
        into.write(_FORMAT)
        pickler = ValuePickler(into, values, look, only_state=bool(only_state))
        pickler.dump_all((sorted(only_state), dict(values)))
        return into, [(obj, what) for obj, what, _ in pickler.missing]

    return _at_any_depth(write)


def _at_any_depth(job: Callable[[], T]) -> T:
    try:
        return job()  # in this thread, of which libraries keep what they are set to
    except (RecursionError, pickle.PicklingError) as error:
        if not isinstance(error.__cause__ or error, RecursionError):
            raise
    return run_with_deep_stack(job)


class ValueUnpickler(HeapUnpickler):
    """Reads what :class:`ValuePickler` has written; what goes wrong is raised, or left out where that `guards`."""

    def __init__(
        self, content: bytes, names: Mapping[str, Any], place: Callable[[str], str], *, guards: bool = False
    ) -> None:
        stream = io.BytesIO(content)
        stream.seek(len(_FORMAT) if content.startswith(_FORMAT) else 0)
        super().__init__(stream, Snapshot({}), reopen=False)
        self._names, self._place, self._guards = names, place, guards

    def persistent_load(self, reference: Any) -> Any:
        kind, what, *_ = reference
        if kind == "names":
            return self._names
        if kind == "path":
            return self._place(what[1:])
        if kind == "code":
            name, *attributes = what.split(".")
            return reduce(getattr, attributes, self._names[name])
        return super().persistent_load(reference)

    def find_class(self, module: str, name: str) -> Any:
        find = super().find_class if self._guards else partial(pickle.Unpickler.find_class, self)
        definition = find(module, name)
        return _write_with_missing if definition is write_new else definition


def _write_with_missing(obj: Any, values: Mapping[Any, Any]) -> None:
    """Give a new object its attributes, those too that were left out: where there is one, it keeps these."""
    kind = kind_of(obj)
    if isinstance(kind, AttributesKind):
        kind.write(obj, values, ())
    else:
        write_new(obj, values)


def read_values(
    content: bytes, names: Mapping[str, Any], place: Callable[[str], str] = str
) -> tuple[list[str], dict[str, Any]]:
    """Return the names of which there is only the state, and all values, made anew.

    Parameters
    ----------
    names : mapping
        Of the program, with its classes and functions.
    place : callable
        Gives the path that is used here instead of one.

    Raises
    ------
    BundleCheckError
        If an earlier version has written them.
    """
    if not content.startswith(_FORMAT):
        raise BundleCheckError(
            "The values of this experiment were stored by an earlier version of det_native: submit the training again.",
            (),
        )
    only_state, values = _at_any_depth(lambda: ValueUnpickler(content, names, place).load_all())
    return only_state, values


def put_values(
    content: bytes, names: MutableMapping[str, Any], wanted: Mapping[str, bool], place: Callable[[str], str] = str
) -> None:
    """Bind names to their values.

    Parameters
    ----------
    content : bytes
        Of :func:`write_values`.
    names : mapping
        Of the program.
    wanted : mapping of str to bool
        The names to bind, and whether the object that one has takes the state in place.
    place : callable
        Gives the path that is used here instead of one.

    Raises
    ------
    AnotherBuildError
        If an object cannot take the state that travelled.
    """
    only_state, values = read_values(content, names, place)
    values = {name: value for name, value in values.items() if name in wanted}
    there = {name: names[name] for name in values if wanted[name] and name in names}
    before = dict(there)
    sentences = graft_names(there, values) if there else there.update(values)
    if sentences:
        raise AnotherBuildError(sentences[0].partition("`")[2].partition("`")[0])
    for name in values:
        if name in only_state and there[name] is not before.get(name, there):
            raise AnotherBuildError(name)
    names.update(there)


def check_values(content: bytes) -> None:
    """Load what can be loaded without the program: what is made of its classes is not.

    Raises
    ------
    Exception
        Whatever loading raises that no class of the program has a part in.
    """
    program = _Program()
    try:
        read_values(content, program)
    except Exception:
        if not program.is_needed:
            raise


class _Program(dict[str, Any]):
    """Stands for the names of a program."""

    is_needed = False

    def __missing__(self, name: str) -> Any:
        self.is_needed = True
        return _OfProgram


class _OfProgram:
    """Stands for a class of the program, or an object."""

    def __new__(cls, *_: Any, **__: Any) -> _OfProgram:
        return object.__new__(cls)


def pack_whole(value: Any, limit: int, *, folder: str, look: Look = lambda obj: None) -> bytes:
    """Return a value as bytes, for a process that has made another: nothing, if it has more than `limit` bytes.

    Paths in the folder of the user's files are those of the reader's working directory. What belongs to its process,
    and what cannot be made where it is read, is left out.
    """
    folder = f"{folder}{os.sep}"

    def look_first(obj: Any) -> Any:
        if (reference := look(obj)) is not None:
            return reference
        if type(obj) is str:
            return ("within", obj[len(folder) :]) if obj.startswith(folder) else None
        return stand_in(kind) if (kind := kind_of(obj).stays) else None

    def write() -> Output:
        output = Output(limit)
        ValuePickler(output, {}, look_first, only_state=True, guards=True).dump_all(value)
        return output

    parts = _at_any_depth(write).parts
    return pickle.dumps((sys.version_info[:2], parts), protocol=5) if parts else b""


def unpack_whole(data: bytes, names: Mapping[str, Any] | None = None, place: Callable[[str], str] = str) -> Any:
    """Return what :func:`pack_whole` has packed. Code of another version of Python is left out.

    Parameters
    ----------
    names : mapping, optional
        What is in place of the names of the program.
    place : callable
        Gives the path that is used here instead of one elsewhere.
    """
    python, parts = pickle.loads(data)
    reader = ValueUnpickler if python == sys.version_info[:2] else _WithoutCode
    return _at_any_depth(lambda: reader(b"".join(parts), names or {}, place, guards=True).load_all())


class _WithoutCode(ValueUnpickler):
    def make(self, function: Any, *arguments: Any) -> Any:
        if function is types.CodeType:
            return Missing("code of another version of Python")
        return super().make(function, *arguments)


def pack_roots(table: Table, limit: int, *, folder: str) -> bytes:
    """Return the roots of a table, and the variables that functions read, as :func:`pack_whole` does.

    The largest arrays, texts and lists are left out until the others are within the limit, and so are secrets.
    """
    snapshot, large = table.snapshot, {*map(id, _largest(table.snapshot, limit))}
    namespaces: set[int] = set()
    names: dict[str, Any] = {}
    for number, obj in enumerate(snapshot.objects):
        if type(obj) is types.FunctionType and obj.__module__ == "__main__":
            namespaces.add(id(obj.__globals__))
            read = zip(snapshot.facts[number], snapshot.children[number], strict=True)
            names |= {label[1]: child for label, child in read if is_read(label)}

    def look(obj: Any) -> Any:
        if id(obj) in namespaces:
            return "names", ""
        if id(obj) in large:
            return stand_in("too large")
        return stand_in("a secret") if type(obj) is str and obj in table.secrets else None

    return pack_whole((table.given, names), limit, folder=folder, look=look)


def unpack_roots(data: bytes, place: Callable[[str], str] = str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the roots that :func:`pack_roots` has packed, and names which functions of theirs read."""
    names: dict[str, Any] = {"__name__": "__main__", "__builtins__": __builtins__}
    given, read = unpack_whole(data, names, place)
    names.update(read)
    return given, names


def _largest(snapshot: Snapshot, limit: int) -> list[Any]:
    """Return the objects whose content is left out so that the others are within a limit."""
    large = {cls for cls in {*snapshot.classes} if is_offered(cls, "nbytes")}
    whole = zip(snapshot.objects, snapshot.kinds, snapshot.classes, strict=True)
    sizes = [(size_of(obj), obj) for obj, kind, cls in whole if kind.is_whole or cls in large]
    for number in range(snapshot.first, len(snapshot.objects)):
        children = snapshot.children[number]
        if len(children) > _MANY and snapshot.kinds[number].is_listed:
            sizes.append((_NUMBER_BYTES * len(children), snapshot.objects[number]))
        sizes += [(len(child), child) for child in children if type(child) in (str, bytes) and len(child) > _MANY]
    total, dropped = sum(size for size, _ in sizes), []
    for size, obj in sorted(sizes, key=lambda pair: -pair[0]):
        if total <= limit:
            break
        total -= size
        dropped.append(obj)
    return dropped
