"""The cells of a notebook in PyTorch: what trains, and what is seen of it."""

from __future__ import annotations

TORCH = """
import torch
import det_native as det
from torch.utils.data import DataLoader, TensorDataset

x = torch.linspace(-1, 1, 64 * 4).reshape(64, 4)
y = x.sum(1, keepdim=True)
data = DataLoader(TensorDataset(x, y), 16)

def begin(port=0, bad=False, **where):
    context = det.experimental.pytorch.init(config, **where)
    model = context.wrap_model(torch.nn.Linear(4, 1))
    optimizer = context.wrap_optimizer(torch.optim.Adam(model.parameters(), 0.1))

    def train_batch(batch, epoch_idx, batch_idx):
        if port and batch_idx == 1:
            gate(port)
        if bad and batch_idx == 1:
            raise ValueError("no luck")
        loss = torch.nn.functional.mse_loss(model(batch[0]), batch[1])
        context.backward(loss)
        context.step_optimizer(optimizer)
        return loss
    return context, model, optimizer, train_batch

def loss_here():
    with torch.no_grad():
        return torch.nn.functional.mse_loss(model(x), y).item()

def steps():
    return [int(one["step"]) for one in optimizer.state.values()]
"""
#: Tests change it; each begins with this one.
CONFIG = """
config = {"reproducibility": {"experiment_seed": 1}, "max_restarts": 0, "min_checkpoint_period": {"batches": 1}}
"""
FIT = "history = context.fit(data, train_batch=train_batch, epochs=3{})"
