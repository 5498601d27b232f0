"""Settings of notebooks with PyTorch, and functions that functions make."""

from __future__ import annotations

from shape import Shape

SHAPES = (
    Shape(
        "a dataclass of settings",
        """
$imports
from dataclasses import dataclass, field

@dataclass
class Config:
    lr: float = 0.1
    sizes: list = field(default_factory=lambda: [2, 1])
    name: str = "baseline"
# %%
cfg = Config(lr=0.2)
# %%
$data
# %%
torch.manual_seed(1)
model = nn.Linear(*cfg.sizes)
optimizer = torch.optim.SGD(model.parameters(), lr=cfg.lr)
# %%
def train_batch(batch, epoch_idx, batch_idx):
    loss = cfg.lr * F.mse_loss(model(batch[0]), batch[1])
    context.backward(loss)
    context.step_optimizer(optimizer)
    return {"loss": loss}
# %%
$fit
""",
        (("Config(lr=0.2)", "Config(lr=0.3)"), ("cfg.lr * F.mse_loss", "cfg.lr + F.mse_loss")),
    ),
    Shape(
        "argparse with an empty list",
        """
$imports
import argparse

parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float, default=0.1)
parser.add_argument("--hidden", type=int, default=4)
parser.add_argument("--no-cuda", action="store_true")
args = parser.parse_args([])
args.cuda = not args.no_cuda and torch.cuda.is_available()
# %%
$data
# %%
torch.manual_seed(1)
model = nn.Sequential(nn.Linear(2, args.hidden), nn.Linear(args.hidden, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=args.lr)
# %%
def train_batch(batch, epoch_idx, batch_idx):
    loss = F.mse_loss(model(batch[0]), batch[1]) * (0.5 if args.cuda else 1.0) + args.lr
    context.backward(loss)
    context.step_optimizer(optimizer)
    return {"loss": loss}
# %%
$fit
""",
        (("default=4", "default=5"), ("default=0.1", "default=0.3")),
    ),
    Shape(
        "an Enum and a NamedTuple",
        """
$imports
from enum import Enum, auto
from typing import NamedTuple

class Mode(Enum):
    FAST = auto()
    SLOW = auto()

class Args(NamedTuple):
    lr: float = 0.1
    mode: Mode = Mode.FAST

args = Args()
# %%
$data
# %%
$model
# %%
def train_batch(batch, epoch_idx, batch_idx):
    loss = F.mse_loss(model(batch[0]), batch[1])
    if args.mode is Mode.FAST:
        loss = args.lr * loss
    context.backward(loss)
    context.step_optimizer(optimizer)
    return {"loss": loss}
# %%
$fit
""",
        (("lr: float = 0.1", "lr: float = 0.5"), ("mode: Mode = Mode.FAST", "mode: Mode = Mode.SLOW")),
    ),
    Shape(
        "a global counter and a history that the step fills",
        """
$imports
from collections import defaultdict

step = 0
history = defaultdict(list)
best = {"loss": float("inf")}
# %%
$data
# %%
$model
# %%
def train_batch(batch, epoch_idx, batch_idx):
    global step
    step += 1
    loss = F.mse_loss(model(batch[0]), batch[1])
    history["loss"].append(loss.item())
    best["loss"] = min(best["loss"], loss.item())
    if step > 1:
        context.backward(loss)
        context.step_optimizer(optimizer)
    return {"loss": loss}
# %% look
context = None
train_batch(dataset[:4], 0, 0), history
# %%
$fit
""",
        (("step > 1", "step > 5"), ('float("inf")', "0.0")),
    ),
    Shape(
        "an object for early stopping that keeps weights",
        """
$imports
import copy

class EarlyStopping:
    def __init__(self, patience=3, min_delta=0.0):
        self.patience, self.min_delta = patience, min_delta
        self.counter, self.best, self.weights = 0, np.inf, None

    def __call__(self, loss, model):
        if loss < self.best - self.min_delta:
            self.best, self.weights, self.counter = loss, copy.deepcopy(model.state_dict()), 0
        else:
            self.counter += 1
        return self.counter >= self.patience

stopper = EarlyStopping(patience=2)
# %%
$data
# %%
$model
# %%
def train_batch(batch, epoch_idx, batch_idx):
    loss = F.mse_loss(model(batch[0]), batch[1])
    if not stopper(loss.item(), model):
        context.backward(loss)
        context.step_optimizer(optimizer)
    return {"loss": loss}
# %%
$fit
""",
        (("patience=2", "patience=5"), ("self.counter += 1", "self.counter += 2")),
    ),
    Shape(
        "a decorator that takes the time",
        """
$imports
import functools, time

def timed(label):
    def decorate(function):
        @functools.wraps(function)
        def wrapper(*args, **kwargs):
            start = time.perf_counter()
            result = function(*args, **kwargs)
            print(f"{label}: {time.perf_counter() - start:.3f}s")
            return result
        return wrapper
    return decorate
# %%
$data
# %%
$model
# %%
@timed("step")
def train_batch(batch, epoch_idx, batch_idx):
    loss = F.mse_loss(model(batch[0]), batch[1])
    context.backward(loss)
    context.step_optimizer(optimizer)
    return {"loss": loss}
# %%
$fit
""",
        (("loss = F.mse_loss(model(batch[0]), batch[1])", "loss = F.mse_loss(model(batch[0]), batch[1] + 1)"),),
    ),
    Shape(
        "a partial as the step",
        """
$imports
from functools import partial
# %%
$data
# %%
$model
# %%
def step(batch, epoch_idx, batch_idx, *, weight, criterion):
    loss = weight * criterion(model(batch[0]), batch[1])
    context.backward(loss)
    context.step_optimizer(optimizer)
    return {"loss": loss}

train_batch = partial(step, weight=0.5, criterion=nn.MSELoss())
# %%
$fit
""",
        (("weight=0.5", "weight=0.6"), ("nn.MSELoss()", "nn.L1Loss()")),
    ),
)
