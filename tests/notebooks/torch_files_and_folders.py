# A folder made in a cell, files by absolute paths, and cells that fail behind the training and in a function.
# %%
import os
from pathlib import Path
import numpy as np
import torch
from torch.utils.data import DataLoader, TensorDataset
import det_native as det
# %%
folder = Path("small")
os.makedirs(folder)
np.save(folder / "x.npy", np.linspace(-1, 1, 256, dtype="float32").reshape(-1, 2))
BASE = os.getcwd()
OUT = os.path.join(BASE, "out")
os.makedirs(OUT)
# %%
X = torch.from_numpy(np.load(os.path.join(BASE, "small", "x.npy")))
Y = X.sum(1, keepdim=True)
seen = []

def fill(numbers):
    for number in numbers:
        seen.append(1 / number)
# %% raises
fill([2, 4, 0, 8])
# %% raises
torch.manual_seed(1)
context = det.experimental.pytorch.init({"reproducibility": {"experiment_seed": 1}})
model = context.wrap_model(torch.nn.Sequential(torch.nn.Linear(2, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1)))
optimizer = context.wrap_optimizer(torch.optim.SGD(model.parameters(), lr=0.05))
loader = DataLoader(TensorDataset(X, Y), batch_size=16)
for x, y in context.train(loader, epochs=2):
    loss = torch.nn.functional.mse_loss(model(x), y)
    context.backward(loss)
    context.step_optimizer(optimizer)
    context.report(loss=loss)
scale = sum(seen)
torch.load("/nowhere/best.pt")
# %%
context = det.experimental.pytorch.init({"reproducibility": {"experiment_seed": 2}})
model = context.wrap_model(torch.nn.Linear(2, 1))
optimizer = context.wrap_optimizer(torch.optim.SGD(model.parameters(), lr=0.05 * scale))
best = float("inf")
for x, y in context.train(loader, epochs=3):
    loss = torch.nn.functional.mse_loss(model(x), y)
    context.backward(loss)
    context.step_optimizer(optimizer)
    context.report(loss=loss)
    if loss.item() < best:
        best = loss.item()
        torch.save(model.state_dict(), os.path.join(OUT, "best.pt"))
