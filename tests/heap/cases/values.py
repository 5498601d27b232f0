import array, asyncio, collections, functools, io, itertools, types
import numpy as np, pandas as pd, torch, torch.nn as nn
class Named:
    """Its hash is its name's: in a cycle it is asked for before there is one."""
    def __init__(self, name): self.name = name; self.peers = set()
    def __hash__(self): return hash(self.name)
    def __eq__(self, other): return isinstance(other, Named) and self.name == other.name
class Counted(dict):
    def __init__(self): super().__init__(); self.n = 0
class Failure(Exception):
    def __init__(self, text, rows): super().__init__(text); self.rows = rows
torch.manual_seed(0)
p = torch.ones(2); q = torch.ones(2); sparse = torch.eye(2).to_sparse(); expanded = torch.ones(4).view(2, 2).t()
matrix = np.matrix([[1.0, 2.0]]); masked = np.ma.array([1.0, 2.0, 3.0]); fortran = np.asfortranarray(np.zeros((2, 3))); texts = np.array(["aa", "bb"])
held = {}; ended = iter([1, 2]); pairs = zip([1], [2]); numbered = enumerate("ab"); mapped = map(str, [1, 2]); backwards = reversed([1, 2, 3])
buffer = io.StringIO(); raw = io.BytesIO(); octets = bytearray(b"a"); numbers = array.array("i", [1]); ring = collections.deque([1, 2, 3]); counted = Counted(); jobs = asyncio.Queue()
frame = pd.DataFrame({"a": [1, 2], "b": [3.0, 4.0], "c": ["x", "y"]}); series = pd.Series([1, 2], index=["u", "v"]); levels = pd.DataFrame({"v": [1, 2]}, index=pd.MultiIndex.from_tuples([(1, "a"), (2, "b")]))
model = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2)); model.register_buffer("memory", torch.zeros(2)); calls = []

#! train
first, second = Named("a"), Named("b"); first.peers.add(second); second.peers.add(first); group = {first, second}; by_name = {first: [second]}
p.requires_grad_(True); p.grad = torch.ones(2); q.data = torch.zeros(5); sparse.mul_(2); expanded.mul_(3)
matrix[0, 1] = 5; masked[1] = np.ma.masked; fortran[:, 1] = 3; texts[0] = "zz"
proxy = types.MappingProxyType(held); held["x"] = 1; call = functools.partial(print, held); chain = itertools.chain([1], [2])
list(ended); list(pairs); next(numbered); next(mapped); next(backwards)
failure = Failure("late", [1]); buffer.write("x"); raw.write(b"q"); octets += b"zz"; numbers.append(3); ring.rotate(1); counted.n = 3; counted["k"] = 1; jobs.put_nowait(2)
frame.loc[2] = [5, 6.0, "z"]; frame["n"] = 1; series["w"] = 5; levels.loc[(3, "c"), "v"] = 9; frame.drop(columns="b", inplace=True)
model.memory = torch.ones(5); model.append(nn.Linear(2, 1)); model[0].weight.requires_grad_(False); model.eval(); hook = model.register_forward_hook(lambda *given: calls.append(1))

#! check
sorted(x.name for x in group), first in group, first in second.peers, by_name[first][0] is second
p, p.grad, q, sparse.to_dense(), expanded
matrix, masked, fortran, texts
proxy["x"], call.args[0] is held, list(chain)
list(ended), list(pairs), list(numbered), list(mapped), list(backwards)
failure, failure.rows, buffer.getvalue(), raw.getvalue(), octets, numbers, ring, counted, counted.n, jobs.get_nowait()
frame, series, levels
model.memory, len(model), model[0].weight.requires_grad, model.training, model(torch.ones(1, 2)).shape, calls
