import io, os, queue, csv, heapq, random, bisect, operator, collections, types, functools, time, threading
import numpy as np, pandas as pd, torch, torch.nn as nn
torch.manual_seed(1); net = nn.Linear(2, 1); opt = torch.optim.SGD(net.parameters(), 0.1); x = torch.ones(4, 2)
class Box: pass
class Hist:
    def __init__(self): self.rows = []
    def put(self, v): self.rows.append(v)
    def __len__(self): return len(self.rows)
    def __call__(self, v): self.rows.append(v)
    def __lshift__(self, v): self.rows.append(v)
def note(where, v): where.append(v)
class K: total = 0
q = queue.Queue()
buf = io.StringIO()
heap = [3, 4]
arr = np.zeros(2)
hist = np.zeros(3)
acc = torch.zeros(1)
deck = list(range(6)); random.seed(1)
box = Box()
h = Hist()
h2 = Hist()
h3 = Hist()
log = []
gv = 0
pass
a1 = []; a2 = a1
base = np.zeros(4); part = base[:2]
def mk():
    s = []
    def add(v): s.append(v)
    def get(): return list(s)
    return add, get
add, get = mk()
store = []; push = store.append
d = {}; keys = d.keys()
res = []
outs = []
outs2 = []
ex = []
pass
os.environ['PEAT'] = 'none'
import string
seen = []; probe = nn.Linear(2, 1); hh = probe.register_forward_hook(lambda m, i, o: seen.append(1))
df = pd.DataFrame({'v': [0, 0]})
side = nn.Linear(1, 1)
gg = torch.Generator().manual_seed(3)
t0 = time.time()

#! train
for epoch in range(2):
    loss = net(x).pow(2).mean(); opt.zero_grad(); loss.backward(); opt.step()
    q.put(epoch)
    print(epoch, file=buf)
    heapq.heappush(heap, -epoch)
    np.copyto(arr, epoch + 1.0)
    np.add.at(hist, [epoch], 1)
    torch.add(acc, 1, out=acc)
    random.shuffle(deck)
    setattr(box, 'v', epoch)
    h.put(epoch)
    h2(epoch)
    h3 << epoch
    note(log, epoch)
    globals()['gv'] = epoch + 1
    K.total += epoch + 1
    a1.append(epoch)
    part[:] = epoch + 1
    add(epoch)
    push(epoch)
    d[epoch] = 1
    t = threading.Thread(target=res.append, args=(epoch,)); t.start(); t.join()
    list(map(outs.append, [epoch]))
    [outs2.append(i) for i in range(2)]
    exec('ex.append(epoch)')
    (wal := epoch)
    os.environ['PEAT'] = str(epoch)
    string.peat = epoch
    probe(x)
    df.iloc[epoch] = epoch + 5
    nn.init.constant_(side.weight, epoch + 2.0)
    r = torch.rand(1, generator=gg)
    spent = time.time() - t0

#! check
q.qsize(), list(q.queue)
buf.getvalue()
heap
arr
hist
acc
deck
getattr(box, 'v', None)
len(h)
h2.rows
h3.rows
log
gv
K.total
a2, a1 is a2
base, np.shares_memory(base, part)
get()
store
list(keys)
res
outs
outs2
ex
wal
os.environ['PEAT'], os.getenv('PEAT')
getattr(string, 'peat', None)
seen
df.v.tolist()
side.weight.item()
round(torch.rand(1, generator=gg).item(), 5)
spent > 0
net.weight, net.bias, net.weight.grad
opt.param_groups[0]['params'][0] is net.weight
round(loss.item(), 6)
