import itertools, collections, io, csv, functools, heapq, queue, types, os
import numpy as np, pandas as pd, torch, torch.nn as nn
from contextlib import contextmanager
torch.manual_seed(1)
ring = itertools.cycle("abcd"); numbers = (i * i for i in range(100)); it = iter([5, 6, 7, 8, 9]); count = itertools.count(10); en = enumerate("pqrst")
def f(v): f.calls = getattr(f, "calls", 0) + 1; f.seen.append(v); return v
f.seen = []
def g(v, cache={}): cache[v] = v; return len(cache)
class Stat:
    n = 0
    @classmethod
    def inc(cls): cls.n += 1
    @staticmethod
    def touch(): Stat.n += 10
class Single:
    _i = None
    def __new__(cls):
        if cls._i is None: cls._i = super().__new__(cls); cls._i.v = []
        return cls._i
heap = []; q = queue.Queue(); buf = io.StringIO(); w = csv.writer(buf); ns = types.SimpleNamespace(k=0); ser = pd.Series(dtype=float); od = collections.OrderedDict(); cm = collections.ChainMap({}, {"z": 1}); arr = np.zeros(3); view = arr[1:]; matrix = [[0] * 2] * 2; nested = {"a": {"b": []}}; ref = nested["a"]["b"]; ts = torch.zeros(3); tview = ts[:2]; ba = bytearray(b""); viewed = bytearray(b"abc"); of_viewed = memoryview(viewed)
net = nn.Linear(2, 1); opt = torch.optim.SGD(net.parameters(), 0.1); x = torch.ones(4, 2); models = [net]; layer = net.weight
partial = functools.partial(f, 3)
@contextmanager
def timing(name):
    od[name] = od.get(name, 0) + 1
    yield
    ns.k += 1
raw = io.BytesIO()

#! train
for epoch in range(3):
    loss = net(x).pow(2).mean(); opt.zero_grad(); loss.backward(); opt.step(); v = round(loss.item(), 5)
    letter = next(ring), next(numbers), next(it), next(count), next(en)
    f(v); partial(); size = g(v); Stat.inc(); Stat.touch(); Single().v.append(epoch); heapq.heappush(heap, -v); q.put(v); w.writerow([epoch, v]); ser.loc[epoch] = v
    with timing("step"): pass
    cm["y"] = epoch; arr[epoch] = v; matrix[0][1] += 1; nested["a"]["b"].append(v); ts[epoch] = loss.item(); ba.extend(b"x"); of_viewed[0] = 65 + epoch; raw.write(b"z")
    if epoch == 0: first = loss
    if epoch == 1: del od["step"]; extra = {"made": "in the loop"}
    torch.set_default_dtype(torch.float32); os.environ["LAST_EPOCH"] = str(epoch); np.set_printoptions(precision=2)

#! check
letter, f.calls, f.seen, size, Stat.n, Single().v, heap, q.qsize(), buf.getvalue(), ser.tolist(), ns.k, dict(od)
g(99), raw.getvalue()
dict(cm), arr.tolist(), view.tolist(), matrix, matrix[0] is matrix[1], ref, ref is nested["a"]["b"], ts.tolist(), tview.tolist(), bytes(ba), bytes(viewed), bytes(of_viewed), models[0] is net, layer is net.weight, round(layer.sum().item(), 5), extra
os.environ.get("LAST_EPOCH"), np.get_printoptions()["precision"], first.item()
next(ring)
next(it), list(it)
next(count)
next(en)
w.writerow([9, 9]), buf.getvalue()
#! left
`numbers` is a generator: it stayed as it was.
