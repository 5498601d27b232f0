"""What never travels by itself, by the names of classes: its cell runs again instead."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from det_native.heap.edges import full_name

_NEVER_SENT: dict[str, str] = {
    name: what
    for what, names in {
        "lock": "_thread.lock _thread.RLock _thread._local threading.Condition threading.Event threading.Semaphore "
        "multiprocessing.synchronize.SemLock",
        "thread": "threading.Thread",
        "process": "multiprocessing.process.BaseProcess subprocess.Popen",
        "queue": "queue.Queue",
        "handle": "_io._IOBase sqlite3.Connection sqlite3.Cursor mmap.mmap",
        "socket": "_socket.socket",
        "loop": "asyncio.events.AbstractEventLoop",
        "context variable": "_contextvars.ContextVar",
        "generator": "builtins.generator builtins.async_generator",
        "iterator": "builtins.coroutine builtins.frame builtins.traceback builtins.list_iterator "
        "builtins.tuple_iterator builtins.dict_keyiterator builtins.map builtins.zip builtins.filter "
        "builtins.enumerate det_native.loops.batches.LoopBatches",
        "model": "torch.nn.modules.module.Module keras.src.engine.base_layer.Layer keras.src.layers.layer.Layer "
        "tensorflow.python.module.module.Module",
        "optimizer": "torch.optim.optimizer.Optimizer keras.src.optimizers.base_optimizer.BaseOptimizer "
        "keras.src.optimizers.optimizer._BaseOptimizer keras.src.optimizers.legacy.optimizer_v2.OptimizerV2",
        "scheduler": "torch.optim.lr_scheduler.LRScheduler torch.optim.lr_scheduler._LRScheduler",
        "dataset": "torch.utils.data.dataset.Dataset tensorflow.python.data.ops.dataset_ops.DatasetV2 "
        "tensorflow.python.data.ops.iterator_ops.OwnedIterator",
        "loader": "torch.utils.data.dataloader.DataLoader torch.utils.data.dataloader._BaseDataLoaderIter "
        "torch.utils.data.sampler.Sampler",
        "graph": "tensorflow.python.framework.ops.Graph",
    }.items()
    for name in names.split()
}
#: Of those, what travels all the same where nothing else gives what it came to: with what it has learned.
BUILT_AGAIN = frozenset({"model", "optimizer", "scheduler"})
#: Generators of random numbers, which go on where they were.
_STREAMS = frozenset({"torch._C.Generator", "numpy.random._generator.Generator"})


def never_sent(value: Any) -> str:
    """Return what an object is that never travels by itself: ``model``, ``lock``; empty if it may."""
    cls: Any = type(value)
    return _never_sent(cls)


@lru_cache(maxsize=4096)
def _never_sent(cls: Any) -> str:
    return next((_NEVER_SENT[name] for name in map(full_name, cls.__mro__) if name in _NEVER_SENT), "")


def is_built_again(value: Any) -> bool:
    """Whether an object is one that its cell builds, and that travels with what it has learned if need be."""
    return never_sent(value) in BUILT_AGAIN


def has_state(value: Any) -> bool:
    """Whether an object of the same class can take what the use of a value has made of it."""
    return is_built_again(value) or full_name(type(value)) in _STREAMS
