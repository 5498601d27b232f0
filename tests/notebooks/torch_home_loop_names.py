# Lists of losses, early stopping by hand, an EMA copy and the best weights: all of them used below the loop.
# plain: the same losses
# same: train_losses, history, stopper.best, stopper.waited, best_step, seen, ema.state_dict(), model.state_dict(), summary, loss.item()
# %%
import copy
from collections import deque

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

import det_native as det

torch.manual_seed(0)
context = det.experimental.pytorch.init()
# %%
x = torch.linspace(-1, 1, 128 * 3).reshape(128, 3)
y = x.prod(1, keepdim=True) + 0.1 * torch.randn(128, 1)
train_loader = DataLoader(TensorDataset(x, y), batch_size=16, shuffle=True)


class EarlyStopping:
    def __init__(self, patience=6):
        self.patience, self.best, self.waited = patience, None, 0

    def __call__(self, value):
        if self.best is None or value < self.best:
            self.best, self.waited = value, 0
            return True
        self.waited += 1
        return False


def note(value):
    global seen
    seen += 1
    history["mean"].append(np.mean(recent))


model = context.wrap_model(nn.Sequential(nn.Linear(3, 16), nn.ReLU(), nn.Dropout(0.1), nn.Linear(16, 1)))
optimizer = context.wrap_optimizer(torch.optim.Adam(model.parameters(), lr=0.01))
ema = copy.deepcopy(model)
stopper = EarlyStopping()
train_losses, history, recent = [], {"mean": [], "lr": np.zeros(32)}, deque(maxlen=4)
best_step, best_weights, seen = None, None, 0
# %%
for xb, yb in context.train(train_loader, epochs=4):
    loss = F.mse_loss(model(xb), yb)
    context.backward(loss)
    context.step_optimizer(optimizer)
    context.report(loss=loss)
    with torch.no_grad():
        for mine, its in zip(ema.parameters(), model.parameters()):
            mine.data.mul_(0.9).add_(its.data, alpha=0.1)
    train_losses.append(loss.item())
    recent.append(train_losses[-1])
    history["lr"][seen] = optimizer.param_groups[0]["lr"]
    note(loss)
    if stopper(loss.item()):
        best_step, best_weights = seen, copy.deepcopy(model.state_dict())
print(f"last loss {train_losses[-1]:.4f} of {len(train_losses)}")
# %%
summary = [min(train_losses), float(np.mean(history["mean"])), float(history["lr"].sum()), list(recent)]
print(summary)
# %%
model.load_state_dict(best_weights)
model.eval()
ema.eval()
