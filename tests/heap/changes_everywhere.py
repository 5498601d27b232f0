"""A program of every way to change a value times every place where it may be."""

from __future__ import annotations

#: By name: what makes the value, what changes it, what shows it; ``{x}`` is where it is.
WAYS = {
    "append": ("[]", "{x}.append(7)", "{x}"),
    "assign": ("0", "{x} = 7", "{x}"),
    "augment": ("1", "{x} += 7", "{x}"),
    "key": ("{{}}", "{x}['k'] = [7]", "{x}"),
    "member": ("{{1}}", "{x}.add(7)", "{x}"),
    "deque": ("collections.deque([1], 2)", "{x}.extend([7, 8])", "{x}"),
    "array": ("np.zeros(3)", "{x}[1] = 7", "{x}"),
    "view": ("np.zeros(3)[1:]", "{x}[1] = 7", "{x}, {x}.base"),
    "tensor": ("torch.zeros(3)", "{x}.add_(7)", "{x}"),
    "gradient": ("nn.Linear(1, 1, bias=False)", "{x}(torch.ones(1)).backward()", "{x}.weight.grad"),
    "weights": ("nn.Linear(1, 1)", "nn.init.constant_({x}.weight, 7)", "{x}.weight.item()"),
    "queue": ("queue.Queue()", "{x}.put(7)", "list({x}.queue)"),
    "text": ("io.StringIO()", "print(7, file={x})", "{x}.getvalue()"),
    "bytes": ("bytearray()", "{x}.extend(b'7')", "{x}"),
    "stream": ("random.Random(1)", "{x}.random()", "{x}.random()"),
    "generator": ("np.random.default_rng(1)", "{x}.random()", "{x}.random()"),
    "iterator": ("iter([1, 2, 3])", "next({x})", "list({x})"),
    "pairs": ("zip([1, 2], [3, 4])", "next({x})", "list({x})"),
    "attribute": ("Box()", "{x}.v = [7]", "vars({x})"),
    "table": ("pd.DataFrame({{'v': [0]}})", "{x}.loc[1] = 7", "{x}.v.tolist()"),
    "function": ("functools.partial(print)", "{x}.seen = 7", "{x}.seen"),
}

#: By name: what makes the place, how it is written.
PLACES = {
    "global": ("{n} = {value}", "{n}"),
    "attribute": ("{n} = Box(); {n}.a = {value}", "{n}.a"),
    "container": ("{n} = {{'a': ({value}, [{value}])}}", "{n}['a'][1][0]"),
    "class": ("class {n}: a = {value}", "{n}.a"),
    "module": ("peat_helpers.{n} = {value}", "peat_helpers.{n}"),
    "loader": ("{n} = DataLoader(Box()); {n}.dataset.a = {value}", "{n}.dataset.a"),
}

_BEGIN = """#! goes on
import collections, functools, io, queue, random
import numpy as np, pandas as pd, torch, torch.nn as nn, peat_helpers
from torch.utils.data import DataLoader
torch.manual_seed(1)
class Box:
    def __len__(self): return 1
    def __getitem__(self, place): return place
"""
_CLOSURE = """def make():
    x = {value}
    def change():
        nonlocal x
        {change}
    def read(): return {read}
    return change, read
change_{n}, read_{n} = make()
"""


def program() -> str:
    """Return the program, in the form of those in ``cases/``."""
    begin, train, checks = [_BEGIN], [], []
    for way, (value, change, read) in WAYS.items():
        made = value.format()
        for place, (make, written) in PLACES.items():
            at = written.format(n=f"{way}_{place}")
            begin.append(make.format(n=f"{way}_{place}", value=made))
            train.append(change.format(x=at))
            checks.append(read.format(x=at))
        begin.append(_CLOSURE.format(n=way, value=made, change=change.format(x="x"), read=read.format(x="x")))
        train.append(f"change_{way}()")
        checks.append(f"read_{way}()")
    lines = [*begin, "#! train", *train, "#! check", *checks, "#! left"]
    return "\n".join(lines) + "\n"
