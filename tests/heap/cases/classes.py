import enum, dataclasses, collections, weakref, functools, abc, threading, typing, numpy as np, random
from collections import namedtuple
@dataclasses.dataclass
class Settings:
    lr: float = 0.1
    seen: list = dataclasses.field(default_factory=list)
@dataclasses.dataclass(frozen=True)
class Point: x: int; tags: list = dataclasses.field(default_factory=list, compare=False)
@dataclasses.dataclass(slots=True)
class Row: a: int; b: list
class Mode(enum.Enum): TRAIN = 1; EVAL = 2
class Flags(enum.IntFlag): A = 1; B = 2
class Slots:
    __slots__ = ("a", "__b", "c")
    def __init__(self): self.a = 1; self.__b = []
    def add(self, v): self.__b.append(v); self.a = v
    def get(self): return self.a, self.__b, hasattr(self, "c")
class Celsius:
    def __set_name__(self, o, n): self.n = "_" + n
    def __get__(self, o, t=None): return self if o is None else getattr(o, self.n, 0)
    def __set__(self, o, v): setattr(o, self.n, v * 2)
class Probe:
    t = Celsius(); limit = 5
    def __init__(self): self._x = 1
    @property
    def x(self): return self._x
    @x.setter
    def x(self, v): self._x = v + 100
    @functools.cached_property
    def slow(self): return len(str(self._x))
class Base(abc.ABC):
    registry = {}; made = []
    def __init_subclass__(cls, **k): super().__init_subclass__(**k); Base.registry[cls.__name__] = cls
    @abc.abstractmethod
    def go(self): ...
class One(Base):
    def go(self): return 1
class MyList(list):
    def __init__(self, *a): super().__init__(*a); self.total = 0
    def append(self, v): super().append(v); self.total += v
class MyDict(collections.UserDict): pass
class Deep(dict):
    def __getattr__(self, n): return self[n]
class NoPickle:
    def __init__(self): self.v = 0
    def __reduce__(self): raise TypeError("never")
class Evil:
    def __getattr__(self, n): raise RuntimeError("evil " + n)
    def __eq__(self, o): raise RuntimeError("eq")
    __hash__ = object.__hash__
class Meta(type):
    count = 0
    def __call__(cls, *a): Meta.count += 1; return super().__call__(*a)
class WithMeta(metaclass=Meta): pass
P2 = namedtuple("P2", "a b")
s = Settings(); p = Point(1); r = Row(1, []); mode = Mode.TRAIN; slots = Slots(); probe = Probe(); ml = MyList([1]); md = MyDict(a=1); deep = Deep(k=[]); nop = NoPickle(); evil = Evil()
def counter():
    n = 0; hidden = []
    def up():
        nonlocal n
        n += 1; hidden.append(n); return n
    def read(): return n, hidden
    return up, read
up, read = counter()
class Node:
    def __init__(self, v): self.v = v; self.next = None; self.friends = set()
a, b = Node(1), Node(2); a.next = b; b.next = a; a.friends.add(b)
cyc = []; cyc.append(cyc); wr = weakref.ref(a); wd = weakref.WeakValueDictionary(a=a); wk = weakref.WeakKeyDictionary({a: 1}); wset = weakref.WeakSet([a])
shared = [0]; d1 = {"s": shared}; d2 = {"s": shared}; tup = (shared, 1, [2]); fz = frozenset({1, 2})
names = {"pear", "fig", "plum"}; objs = {Node(i) for i in range(5)}; total_objs = sorted(objs, key=lambda n: n.v)
@functools.lru_cache(None)
def cached(n): return n * 2
@functools.singledispatch
def show(v): return "any"
deq = collections.deque([1, 2], maxlen=3); cnt = collections.Counter("aab"); dd = collections.defaultdict(list); rng = np.random.default_rng(0); rs = np.random.RandomState(1); rr = random.Random(3)
st = np.zeros(2, dtype=[("a", "f4"), ("b", "i4")]); col = st["a"]; oa = np.array([shared, None], dtype=object); ro = np.arange(3.0); ro.flags.writeable = False; grid = np.zeros((3, 3)); tr = grid.T; rev = grid[::-1, 1]
lock = threading.Lock(); class_of = type("Dyn", (), {"z": []}); dyn = class_of(); T = typing.TypeVar("T")
def plus(v): return v + 1
def opaque(v, *, k=[]): k.append(v); return len(k)

#! train
for e in range(3):
    s.lr *= 0.5; s.seen.append(e); p.tags.append(e); r.a += 1; r.b.append(e); mode = Mode.EVAL; slots.add(e); probe.x = e; probe.t = e; Probe.limit += 1; probe.slow
    ml.append(e); md[str(e)] = e; deep.k.append(e); nop.v += 1; object.__setattr__(p, "x", e); up(); a.v += 1; b.next = Node(e); cyc.append(e)
    shared[0] += 1; tup[2].append(e); names.add(f"new{e}"); objs.add(Node(10 + e)); deq.append(e); cnt["b"] += 5; dd["k"].append(e); rng.random(); rs.rand(); rr.random()
    col[0] = e + 1; oa[1] = {"e": e}; grid[e] = e; WithMeta(); dyn.z.append(e)
class Two(Base):
    def go(self): return 2 + len(Base.registry)
two = Two(); Base.made.append(two); flags = Flags.A | Flags.B; slots.c = 1; p3 = P2(shared, a); new_set = {a, b}; Mode.EVAL.extra = ["note"]
def plus(v): return v + 2
def late(v): return plus(v) + shared[0]
One.go = lambda self: "patched"; Settings.show = property(lambda self: self.lr); del Probe.slow; wd["b"] = b; wk[b] = 2; wset.add(b); opaque(1); ro2 = ro[1:]; cached(4)
gone = shared; del T
@show.register
def _(v: int): return "int"
chain = None
for i in range(5000): chain = [chain]
lst_of_gen = [1, (i for i in range(3)), 3]; dict_of_lock = {"a": 1, "lock": threading.Lock()}; new_nop = NoPickle(); pair = (new_nop, 5)
dc = Settings(seen=shared); meth = s.seen.append; bound = a.__init__; view_new = grid[1:]; evil2 = Evil()

#! check
s, s.lr, p.x, p.tags, r, mode, mode is Mode.EVAL, Mode(2) is mode, Mode.EVAL.extra, flags, flags is Flags(3)
slots.get(), slots.c, probe.x, probe.t, Probe.limit, "slow" in vars(probe), hasattr(Probe, "slow")
ml, ml.total, md, deep, type(deep).__name__, isinstance(deep, Deep), nop.v
up(), read()
a.v, b.next.v, type(b.next) is Node, a.next is b, cyc[0] is cyc, len(cyc)
wr() is a, wd["a"] is a, wd["b"] is b, wk[b], len(wset), wk[a]
shared, d1["s"] is d2["s"], tup, tup[0] is shared, gone is shared, sorted(names), sorted(n.v for n in objs), [n in objs for n in total_objs]
deq, deq.maxlen, cnt, dict(dd), dd.default_factory is list, rng.random(), rs.rand(), rr.random()
st, col, np.shares_memory(st, col), oa[0] is shared, oa, grid, tr, rev, np.shares_memory(grid, tr), np.shares_memory(ro, ro2), ro2, np.shares_memory(view_new, grid)
isinstance(two, Base), two.go(), Base.registry["Two"] is Two, Base.made[0] is two, Two.__mro__[1] is Base, list(Base.registry)
Meta.count, One().go(), s.show, dyn.z, class_of.z is dyn.z
p3.a is shared, p3.b is a, type(p3) is P2, a in new_set, plus(1), late(1), late.__globals__ is globals(), "T" in globals(), opaque(2)
show(3)
(lambda c: [c := c[0] for _ in range(5000)][-1] is None)(chain)
lst_of_gen[0], lst_of_gen[2], len(lst_of_gen)
dict_of_lock["a"], dict_of_lock["lock"].acquire()
pair[1]
dc.seen is shared, meth(7), s.seen, bound.__self__ is a
type(evil2) is Evil
#! left
`lst_of_gen[1]` is a generator: it stays on the worker.
