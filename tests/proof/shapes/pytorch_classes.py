"""Classes of notebooks with PyTorch, and the moments and places that they keep."""

from __future__ import annotations

from shape import Shape

SHAPES = (
    Shape(
        "lru_cache and a cached_property",
        """
$imports
from functools import cached_property, lru_cache

@lru_cache(maxsize=None)
def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)

class Lazy(Dataset):
    def __init__(self, n):
        self.n = n

    @cached_property
    def x(self):
        return torch.tensor([[fib(i), i] for i in range(self.n)]).float()

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        return self.x[i], torch.ones(1)

dataset = Lazy(16)
# %% look
dataset[3], fib(20)
# %%
$model
# %%
$step
# %%
$fit
""",
        (("fib(n - 1) + fib(n - 2)", "fib(n - 1) + 2 * fib(n - 2)"), ("[fib(i), i]", "[i, fib(i)]")),
    ),
    Shape(
        "__slots__, properties, static and class methods",
        """
$imports

class Box:
    __slots__ = ("low", "high")

    def __init__(self, low, high):
        self.low, self.high = low, high

    @property
    def width(self):
        return self.high - self.low

    @staticmethod
    def clip(x):
        return torch.clamp(x, 0.0, 1.0)

    @classmethod
    def unit(cls):
        return cls(0.0, 16.0)

box = Box.unit()
# %%
$data
# %%
$model
# %%
def train_batch(batch, epoch_idx, batch_idx):
    inputs = Box.clip((batch[0] - box.low) / box.width)
    loss = F.mse_loss(model(inputs), batch[1])
    context.backward(loss)
    context.step_optimizer(optimizer)
    return {"loss": loss}
# %%
$fit
""",
        (
            ("cls(0.0, 16.0)", "cls(0.0, 32.0)"),
            ("torch.clamp(x, 0.0, 1.0)", "torch.clamp(x, 0.0, 2.0)"),
            ("self.high - self.low", "self.high + self.low"),
        ),
    ),
    Shape(
        "a mixin, an abstract base and super()",
        """
$imports
from abc import ABC, abstractmethod

class Scaled:
    factor = 2.0

    def scale(self, x):
        return x * self.factor

class Base(nn.Module, ABC):
    @abstractmethod
    def body(self, x): ...

    def forward(self, x):
        return self.body(x)

class Net(Scaled, Base):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(2, 1)

    def body(self, x):
        return self.scale(self.linear(x))

torch.manual_seed(0)
model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
# %%
$data
# %%
$step
# %%
$fit
""",
        (("factor = 2.0", "factor = 3.0"), ("x * self.factor", "x + self.factor")),
    ),
    Shape(
        "a registry of classes",
        """
$imports

class Registry:
    kinds = {}

    @classmethod
    def add(cls, kind):
        cls.kinds[kind.__name__] = kind
        return kind

@Registry.add
class Small(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = nn.Linear(2, 1)

    def forward(self, x):
        return torch.tanh(self.l(x))

@Registry.add
class Large(Small):
    pass
# %%
$data
# %%
torch.manual_seed(1)
model = Registry.kinds["Small"]()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
# %%
$step
# %%
$fit
""",
        (("torch.tanh", "torch.cos"), ('kinds["Small"]', 'kinds["Large"]')),
    ),
    Shape(
        "a method that is replaced",
        """
$imports

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = nn.Linear(2, 1)

    def forward(self, x):
        return self.l(x)
# %%
def forward(self, x):
    return F.softplus(self.l(x))

Net.forward = forward
# %%
$data
# %%
torch.manual_seed(1)
model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
# %%
$step
# %%
$fit
""",
        (("F.softplus", "F.relu"),),
    ),
    Shape(
        "a run of its own name and folder",
        """
$imports
import datetime, getpass, os, tempfile, uuid
from pathlib import Path

run_name = f"{getpass.getuser()}-{datetime.datetime.now():%Y%m%d-%H%M%S}-{uuid.uuid4().hex[:8]}"
run_id = uuid.uuid4()
tmp = tempfile.mkdtemp()
here = os.getcwd()
root = Path(here) / "runs" / run_name
pid = os.getpid()
# %%
$data
# %%
$model
# %%
def train_batch(batch, epoch_idx, batch_idx):
    loss = F.mse_loss(model(batch[0]), batch[1])
    if torch.isnan(loss):
        print(run_id, pid)
        torch.save(loss, os.path.join(tmp, str(root), run_name))
    context.backward(loss)
    context.step_optimizer(optimizer)
    return {"loss": loss}
# %%
$fit
""",
        (("torch.isnan(loss)", "torch.isfinite(loss)"),),
        put_right=True,
    ),
    Shape(
        "moments and a stopwatch",
        """
$imports
import time
from datetime import date, datetime, timedelta

start = time.time()
tick = time.perf_counter()
began = datetime.now()
deadline = began + timedelta(hours=2)
today = date.today()
# %%
$data
# %%
$model
# %%
def train_batch(batch, epoch_idx, batch_idx):
    loss = F.mse_loss(model(batch[0]), batch[1])
    print(f"{time.time() - start:.1f}s {time.perf_counter() - tick:.1f}s {today} {datetime.now() < deadline}")
    context.backward(loss)
    context.step_optimizer(optimizer)
    return {"loss": loss}
# %%
$fit
""",
        (("batch[1])", "batch[1] * 2)"),),
        put_right=True,
    ),
    Shape(
        "a logger, tqdm and filters of warnings",
        """
$imports
import logging, warnings
from tqdm.auto import tqdm

warnings.filterwarnings("ignore")
logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
logger = logging.getLogger(__name__)
bar = tqdm(total=4, disable=True)
# %%
$data
# %%
$model
# %%
def train_batch(batch, epoch_idx, batch_idx):
    loss = F.mse_loss(model(batch[0]), batch[1])
    logger.debug("loss %s", loss)
    bar.update(1)
    bar.set_postfix(loss=float(loss))
    context.backward(loss)
    context.step_optimizer(optimizer)
    return {"loss": loss}
# %%
$fit
""",
        (("F.mse_loss(", "F.huber_loss("),),
    ),
)
