# Gradients of several small batches are accumulated into one step; a moving average of the weights is kept beside.
# killed: epoch == 3, after 144
# same: train_loss, val_loss, ema_loss, global_step, model.state_dict(), ema.state_dict()
# history: train_loss is train_loss, val_loss is val_loss, ema_loss is ema_loss
# two slots, within 1e-3: val_loss, ema_loss, global_step, ema.state_dict()
# %%
import copy

import torch
from sklearn.datasets import load_diabetes
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import det_native as det

torch.manual_seed(123)
accumulation_steps = 4
# %%
X, y = load_diabetes(return_X_y=True)
X = torch.tensor((X - X.mean(0)) / X.std(0), dtype=torch.float32)
y = torch.tensor((y - y.mean()) / y.std(), dtype=torch.float32).unsqueeze(1)
train_loader = DataLoader(TensorDataset(X[:384], y[:384]), batch_size=8, shuffle=True)
val_loader = DataLoader(TensorDataset(X[384:], y[384:]), batch_size=64)
# %%
model = nn.Sequential(nn.Linear(10, 32), nn.Tanh(), nn.Linear(32, 1))
ema = copy.deepcopy(model)
criterion = nn.MSELoss()
optimizer = torch.optim.RMSprop(model.parameters(), lr=0.002)


def update_ema(ema, model, decay=0.9):
    with torch.no_grad():
        for old, new in zip(ema.parameters(), model.parameters()):
            old.mul_(decay).add_(new, alpha=1 - decay)


def validate(net):
    net.eval()
    with torch.no_grad():
        total = sum(criterion(net(x), y).item() * len(x) for x, y in val_loader)
    return total / len(val_loader.dataset)
# %%
context = det.experimental.pytorch.init()
model, optimizer, train_loader, val_loader = context.wrap(model, optimizer, train_loader, val_loader)
global_step = 0
train_loss, val_loss, ema_loss = [], [], []
for epoch in context.epochs(8):
    model.train()
    optimizer.zero_grad()
    running = 0.0
    for i, (inputs, targets) in enumerate(train_loader):
        loss = criterion(model(inputs), targets) / accumulation_steps
        loss.backward()
        running += loss.item() * accumulation_steps
        if (i + 1) % accumulation_steps == 0 or (i + 1) == len(train_loader):
            optimizer.step()
            optimizer.zero_grad()
            update_ema(ema, model)
            global_step += 1
    train_loss.append(running / len(train_loader))
    val_loss.append(validate(model))
    ema_loss.append(validate(ema))
    context.report(train_loss=train_loss[-1], val_loss=val_loss[-1], ema_loss=ema_loss[-1])
    print(f"epoch {epoch} step {global_step}: {train_loss[-1]:.4f} {val_loss[-1]:.4f} ema {ema_loss[-1]:.4f}")
# %%
print(f"{global_step} steps, best {min(ema_loss):.4f}")
