"""What a live value is sent as, or why it is not sent."""

from __future__ import annotations

import io
import types
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from det_native.capture.facts import human_size, size_of, type_name, type_names
from det_native.capture.secrets import looks_secret, text_of_bytes
from det_native.capture.table_texts import texts_of_cells
from det_native.schema.manifests import Codec

#: Bytes of one pickled value, and of all together, that travel undeclared.
VALUE_LIMIT = 1 << 20
TOTAL_LIMIT = 8 << 20

_NEVER: dict[str, str] = {
    "torch.nn.modules.module.Module": "model",
    "keras.engine.base_layer.Layer": "model",
    "keras.src.engine.base_layer.Layer": "model",
    "keras.src.layers.layer.Layer": "model",
    "tensorflow.python.module.module.Module": "model",
    "torch.optim.optimizer.Optimizer": "optimizer",
    "torch.optim.lr_scheduler.LRScheduler": "scheduler",
    "keras.src.optimizers.optimizer.Optimizer": "optimizer",
    "keras.optimizers.optimizer_experimental.optimizer.Optimizer": "optimizer",
    "torch.utils.data.dataset.Dataset": "dataset",
    "torch.utils.data.dataloader.DataLoader": "loader",
    "torch.utils.data.dataloader._BaseDataLoaderIter": "loader",
    "torch.utils.data.sampler.Sampler": "loader",
    "torch._C.Generator": "generator",
    "det_native.pytorch.loop_batches.LoopBatches": "iterator",
    "tensorflow.python.data.ops.dataset_ops.DatasetV2": "dataset",
    "tensorflow.python.data.ops.iterator_ops.OwnedIterator": "dataset",
    "tensorflow.python.framework.ops.Graph": "graph",
    "_thread.lock": "lock",
    "_thread.RLock": "lock",
    "threading.Condition": "lock",
    "threading.Event": "lock",
    "threading.Semaphore": "lock",
    "threading.Thread": "thread",
    "threading.local": "lock",
    "multiprocessing.synchronize.SemLock": "lock",
    "multiprocessing.process.BaseProcess": "process",
    "queue.Queue": "queue",
    "io.IOBase": "handle",
    "_io._IOBase": "handle",
    "sqlite3.Connection": "handle",
    "sqlite3.Cursor": "handle",
    "socket.socket": "socket",
    "_socket.socket": "socket",
    "subprocess.Popen": "process",
    "mmap.mmap": "handle",
    "asyncio.events.AbstractEventLoop": "loop",
    "_contextvars.ContextVar": "context variable",
}
_NEVER_TYPES: tuple[type, ...] = (
    *(types.GeneratorType, types.CoroutineType, types.AsyncGeneratorType, types.FrameType, types.TracebackType),
    *(type(iter([])), type(iter(())), type(iter({})), map, zip, filter, enumerate),
)


class CannotSendError(ValueError):
    """A value cannot travel; the message says why in words that fit after the value's name."""

    def __init__(self, message: str, *, remedy: str = "", kind: str = "", size: int | None = None) -> None:
        super().__init__(message)
        self.remedy = remedy
        self.kind = kind
        self.size = size


class _TooLargeError(Exception):
    pass


@dataclass(frozen=True)
class Encoded:
    """A value as bytes. `modules` are local modules that loading it imports."""

    codec: Codec
    content: bytes
    description: str
    modules: frozenset[str] = frozenset()


class _BoundedWriter(io.RawIOBase):
    """Collects what is written, up to a limit."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.size = 0
        self.parts: list[bytes] = []

    def writable(self) -> bool:
        return True

    def write(self, part: Any) -> int:
        size = part.nbytes if isinstance(part, memoryview) else len(part)
        self.size += size
        if self.size > self.limit:
            raise _TooLargeError
        self.parts.append(bytes(part))
        return size


def never_sent(value: Any) -> str | None:
    """Return what a value is (``model``, ``lock``, ``handle`` ...) if such things are never sent, else None."""
    if isinstance(value, _NEVER_TYPES):
        return "generator" if isinstance(value, types.GeneratorType | types.AsyncGeneratorType) else "iterator"
    for name in type_names(value):
        if name in _NEVER:
            return _NEVER[name]
    return None


def encode(
    name: str,
    value: Any,
    *,
    declared: bool,
    arrays: bool = False,
    limit: int = VALUE_LIMIT,
    is_local: Callable[[str], bool] = lambda _: False,
) -> Encoded:
    """Encode a value for the bundle.

    Parameters
    ----------
    name : str
        Its name in the notebook.
    value : object
    declared : bool
        The user named it in ``values=``: arrays and tables get a format of their own and no limit applies but the
        bundle's; a secret is sent, because that is asked for.
    arrays : bool
        Arrays and tables of a size within the limit get a format of their own, though the user has not named them.
    limit : int
        Bytes of the pickle of a value that is not declared.
    is_local : callable
        Whether a module (by name) is a file of the user's.

    Raises
    ------
    CannotSendError
        The value is of a kind that never travels, is too large, looks like a secret, or holds something that a fresh
        process could not load.
    """
    kind = never_sent(value)
    if kind is not None:
        raise _refusal(value, kind)
    if declared or (arrays and (size_of(value) or limit) < limit):
        if not declared:
            _refuse_secrets(name, value)
        encoded = _encode_array(value)
        if encoded is not None:
            return encoded
    if not declared:
        _check_limit(value, limit)
    return _pickle(name, value, declared=declared, limit=limit, is_local=is_local)


def _check_limit(value: Any, limit: int) -> None:
    if (size := size_of(value)) is not None and size > limit:
        raise _too_large(value, size)
    elif isinstance(value, list | tuple | dict | set | frozenset) and 2 * len(value) > limit:
        raise _too_large(value, None)


def _refusal(value: Any, kind: str) -> CannotSendError:
    remedy = {
        "model": "Run the cell that builds it again, so that its code can be sent.",
        "optimizer": "Run the cell that makes it again, so that its code can be sent.",
        "dataset": "Run the cell that makes it again, so that its code can be sent.",
        "loader": "Run the cell that makes it again, so that its code can be sent.",
    }.get(kind, "Create it inside the function or in setup().")
    return CannotSendError(type_name(value), remedy=remedy, kind=kind)


def _too_large(value: Any, size: int | None) -> CannotSendError:
    shown = human_size(size) if size is not None else "over 1 MiB"
    return CannotSendError(f"{type_name(value)}, {shown}", kind="large", size=size)


def _encode_array(value: Any) -> Encoded | None:
    names = type_names(value)
    if names[0].startswith("tensorflow.python.framework.") and hasattr(value, "numpy"):
        value, names = value.numpy(), ["numpy.ndarray"]
    if "numpy.ndarray" in names and not value.dtype.hasobject and type(value).__name__ == "ndarray":
        import numpy as np

        file = io.BytesIO()
        np.save(file, value, allow_pickle=False)
        return Encoded("npy", file.getvalue(), f"array {value.shape} of {value.dtype}")
    if names[0] == "torch.Tensor" and not value.requires_grad:
        return _encode_tensor(value)
    if names[0].startswith("pandas.") and names[0].endswith(".DataFrame"):
        return _encode_table(value)
    return None


def _encode_tensor(value: Any) -> Encoded | None:
    """As safetensors; None: the tensor is of a kind that it does not know (sparse, quantized), and is pickled."""
    from safetensors.torch import save

    try:
        content = save({"value": value.cpu().contiguous()})
    except (KeyError, RuntimeError, ValueError):
        return None
    return Encoded("safetensors", content, f"tensor {tuple(value.shape)} of {value.dtype}")


def _encode_table(value: Any) -> Encoded | None:
    """As parquet where an engine is installed and gives back the same table; None: the table is pickled."""
    import pandas

    file = io.BytesIO()
    try:
        value.to_parquet(file)
        same = pandas.read_parquet(io.BytesIO(file.getvalue())).equals(value)
    except (ImportError, NotImplementedError, ValueError, TypeError, OSError):
        return None
    return Encoded("parquet", file.getvalue(), f"table of {len(value)} rows") if same else None


def _pickle(name: str, value: Any, *, declared: bool, limit: int, is_local: Callable[[str], bool]) -> Encoded:
    """Pickle a value into a bounded buffer, looking at every object on the way."""
    import pickle

    import cloudpickle

    modules: set[str] = set()

    class _Pickler(cloudpickle.CloudPickler):  # type: ignore[misc]
        def persistent_id(self, obj: Any) -> None:
            _inspect(name, obj, declared, limit, is_local, modules)

    writer = _BoundedWriter(limit if not declared else 1 << 62)
    try:
        _Pickler(writer, protocol=5).dump(value)
    except _TooLargeError:
        raise _too_large(value, size_of(value)) from None
    except CannotSendError:
        raise
    except (pickle.PicklingError, TypeError, AttributeError, NotImplementedError, RecursionError, ValueError) as error:
        raise CannotSendError(
            type_name(value), remedy=f"It cannot be pickled ({error}).", kind="unpicklable"
        ) from error
    return Encoded("cloudpickle", b"".join(writer.parts), type_name(value), frozenset(modules))


def _inspect(
    name: str, part: Any, declared: bool, limit: int, is_local: Callable[[str], bool], modules: set[str]
) -> None:
    """Look at one object inside a value that is being pickled."""
    if isinstance(part, int | float | bool | type(None)):
        return
    if not declared:
        _refuse_secrets(name, part)
        if (size := size_of(part)) is not None and size > limit:
            raise _too_large(part, size)
    if isinstance(part, str | bytes):
        return
    kind = never_sent(part)
    if kind is not None:
        raise _refusal(part, kind)
    _note_home(part, is_local, modules)


def _refuse_secrets(name: str, part: Any) -> None:
    if isinstance(part, bytes | bytearray):
        part = text_of_bytes(part)
    if isinstance(part, str) and looks_secret(part, name):
        raise CannotSendError("looks like a secret", kind="secret")
    if isinstance(part, dict):
        for key, inner in part.items():
            if isinstance(key, str) and isinstance(inner, str) and looks_secret(inner, key):
                raise CannotSendError("holds what looks like a secret", kind="secret")
        return
    if any(map(looks_secret, texts_of_cells(part))):
        raise CannotSendError("holds what looks like a secret", kind="secret")


def _note_home(part: Any, is_local: Callable[[str], bool], modules: set[str]) -> None:
    """Where the code of an object lives: in a cell, which cannot be pickled, or in a module of the user's."""
    if isinstance(part, types.ModuleType):
        home = part.__name__
    else:
        owner = part if isinstance(part, type | types.FunctionType) else type(part)
        home = getattr(owner, "__module__", None) or ""
        if home == "__main__" and not isinstance(part, types.BuiltinFunctionType):
            raise CannotSendError(
                f"is made of `{owner.__qualname__}`, which a cell defines", kind="notebook", remedy=owner.__qualname__
            )
    if home and is_local(home):
        modules.add(home)
