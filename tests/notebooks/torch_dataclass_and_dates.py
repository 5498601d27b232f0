# A dataclass of settings, a decorator that takes the time, a folder named by the date, and a log in it.
# plain: the same losses
# put right
# %%
import os
import time
from dataclasses import dataclass, field, asdict
from datetime import datetime
from functools import wraps

import numpy as np
import torch
import det_native as det
from sklearn.datasets import load_iris

@dataclass
class Config:
    lr: float = 0.05
    epochs: int = 4
    hidden: list = field(default_factory=lambda: [16, 8])
    seed: int = 7
    out_dir: str = "runs"

cfg = Config(epochs=5)
run_name = f"iris_{datetime.now():%Y-%m-%d_%H-%M-%S}"
out = os.path.join(cfg.out_dir, run_name)
os.makedirs(out)
np.random.seed(cfg.seed)
torch.manual_seed(cfg.seed)
print(f"{run_name}: {asdict(cfg)}")

def timed(function):
    @wraps(function)
    def inner(*args, **kwargs):
        start = time.perf_counter()
        try:
            return function(*args, **kwargs)
        finally:
            timings.setdefault(function.__name__, []).append(time.perf_counter() - start)
    return inner

timings = {}
# %%
@timed
def load():
    x, y = load_iris(return_X_y=True)
    order = np.random.permutation(len(x))
    x = (x - x.mean(0)) / x.std(0)
    return torch.tensor(x[order], dtype=torch.float32), torch.tensor(y[order])

def build(sizes):
    layers, before = [], 4
    for size in sizes:
        layers += [torch.nn.Linear(before, size), torch.nn.Tanh()]
        before = size
    return torch.nn.Sequential(*layers, torch.nn.Linear(before, 3))

x, y = load()
# %%
context = det.experimental.pytorch.init({"name": run_name, "hyperparameters": {"lr": cfg.lr, "global_batch_size": 10}})
torch.manual_seed(cfg.seed)
model = context.wrap_model(build(cfg.hidden))
optimizer = context.wrap_optimizer(torch.optim.SGD(model.parameters(), lr=cfg.lr, momentum=0.9))

@timed
def step(inputs, labels):
    loss = torch.nn.functional.cross_entropy(model(inputs), labels)
    context.backward(loss)
    context.step_optimizer(optimizer)
    return loss

loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y), batch_size=10)
started = time.time()
for i, (inputs, labels) in enumerate(context.train(loader, epochs=cfg.epochs)):
    loss = step(inputs, labels)
    context.report(loss=loss)
    if i % 20 == 0:
        with open(os.path.join(out, "log.txt"), "a") as log:
            log.write(f"{datetime.now().isoformat()} {time.time() - started:.1f}s batch {i}: {loss.item():.4f}\n")
