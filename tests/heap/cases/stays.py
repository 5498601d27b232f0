import io, os, tempfile, threading, logging, sqlite3, itertools, subprocess, concurrent.futures as cf, torch, tqdm, tqdm.auto, time, asyncio, contextvars, numpy as np, string
import peat_helpers, peat_helpers as ph
from peat_helpers import step, Bag, STATE
torch.manual_seed(1); net = torch.nn.Linear(2, 1); opt = torch.optim.SGD(net.parameters(), 0.1); loss = torch.tensor(123.0); seen = []
for i in tqdm.auto.tqdm(range(3), disable=False): pass
total = tqdm.auto.tqdm(total=2); log = open("log.txt", "w"); logger = logging.getLogger("peat"); db = sqlite3.connect(":memory:"); lock = threading.Lock(); rl = threading.RLock(); loc = threading.local()
numbers = (i * i for i in range(100)); pool = cf.ThreadPoolExecutor(1); ev = threading.Event(); cv = contextvars.ContextVar("cv", default=1); proc = None
class Recorder:
    def __init__(self): self.lock = threading.Lock(); self.rows = []; self.file = open("rows.txt", "w"); self.gen = (i for i in range(10))
    def add(self, v):
        with self.lock: self.rows.append((v, next(self.gen))); self.file.write("x")
rec = Recorder(); mm = np.lib.format.open_memmap("m.npy", mode="w+", shape=(4,)); cond = threading.Condition(); loop_it = iter(range(10)); data_it = iter(torch.utils.data.DataLoader(list(range(8)), batch_size=2))

#! train
for epoch in range(2):
    loss = net(torch.ones(1, 2)).mean() ** 2; opt.zero_grad(); loss.backward(); opt.step(); seen.append(loss.item()); total.update(1)
    log.write("a"); rec.add(epoch); next(numbers); step(); Bag(); peat_helpers.extra = epoch; next(loop_it); next(data_it); mm[0] = epoch + 1; ev.set()
total.close(); bar2 = tqdm.tqdm(total=1); fh = open("new.txt", "w"); results = {"a": [1, 2], "fh": fh, "gen": (i for i in range(2)), "z": net.weight}; fut = pool.submit(lambda: 1); fut.result()
db2 = sqlite3.connect(":memory:"); err = ValueError("late"); logger2 = logging.getLogger("peat.two"); th = threading.Thread(target=print); cm = open("new.txt"); sem = threading.Semaphore(3)
try: 1 / 0
except ZeroDivisionError as e2: caught = e2
class NetB(torch.nn.Module):
    def __init__(self): super().__init__(); self.l = net; self.fh = fh
    def forward(self, x): return self.l(x)
nb = NetB()

#! check
loss.item(), seen, net.weight.sum().item(), rec.rows
peat_helpers.count, ph.STATE, STATE is peat_helpers.STATE, Bag.made, peat_helpers.extra, step()
results["a"], results["z"] is net.weight, sorted(results)[0]
next(loop_it), repr(err), type(caught).__name__, logger2.name, ev.is_set()
nb(torch.ones(1, 2)).item(), nb.l is net, type(nb) is NetB
rec.lock.acquire(False), rec.add.__self__ is rec
sem.acquire(False)
mm[0]
total.n
#! left
`numbers` is a generator: it stayed as it was.
`data_it` is an iterator of a DataLoader: it stayed as it was.
`rec.gen` is a generator: it stayed as it was.
`db2` is a connection to a database: it stays on the worker.
`results['gen']` is a generator: it stays on the worker.
